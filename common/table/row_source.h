// SPDX-License-Identifier: Apache-2.0
// Tables of numbers that are read in order, such as CSV and .npy files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// How many rows an importer reads at once, unless they are wide.
inline constexpr int64_t kBlockRows = 16 << 10;

// One pass over a table. Not thread-safe.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // These read at most `max_rows` rows into `values`, which must have room for
  // max_rows * width numbers, in C order. They return the number of rows read,
  // which is less than `max_rows` only at the end, and 0 after it.
  // INVALID_ARGUMENT: numbers of the wrong kind, rows of different lengths.
  // DATA_LOSS: a damaged file. Both messages name the file and the line or row.
  virtual absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                               int64_t* values) = 0;
  // NaN and infinity are not errors; see CheckFinite().
  virtual absl::StatusOr<int64_t> ReadFloats(int64_t max_rows,
                                             float* values) = 0;
  // For tables with one number per row: reads them without narrowing them to
  // float. Readers whose numbers are not wider need not override this.
  virtual absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows, double* values);
};

// A table that can be read any number of times. Immutable; any thread may use
// it.
class RowSource {
 public:
  virtual ~RowSource() = default;

  // Starts a pass. The reader may outlive the source.
  virtual absl::StatusOr<std::unique_ptr<RowReader>> Open() const = 0;
  // Whether all values are integers; may read the whole table.
  virtual absl::StatusOr<bool> Integral() const = 0;
  // "FILE: line 8" or "FILE: row 7", for messages about row 7.
  virtual std::string Where(int64_t row) const = 0;

  const std::string& name() const { return name_; }
  // Number of columns, at least 1.
  int64_t width() const { return width_; }
  // Number of rows; -1 if it is unknown until the table is read.
  int64_t rows() const { return rows_; }

 protected:
  RowSource(std::string name, int64_t width, int64_t rows)
      : name_(std::move(name)), width_(width), rows_(rows) {}

 private:
  const std::string name_;
  const int64_t width_;
  const int64_t rows_;
};

// INVALID_ARGUMENT: rows of the table `name` have more than kMaxRowValues
// values.
absl::Status CheckWidth(std::string_view name, int64_t width);

// INVALID_ARGUMENT: one of `rows` rows, starting with row `first` of `source`,
// contains infinity, or NaN unless `nan_allowed`.
absl::Status CheckFinite(const RowSource& source, int64_t first,
                         const float* values, int64_t rows, bool nan_allowed);

}  // namespace millrace
