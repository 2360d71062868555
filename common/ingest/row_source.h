// SPDX-License-Identifier: Apache-2.0
// Tables of numbers, read in order: what CSV and .npy files have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// One pass over a table. Single-threaded.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // Read the next rows, at most `max_rows`, row after row into `values`
  // (room for max_rows * width). Return the number of rows: less than
  // `max_rows` only at the end, then 0.
  // INVALID_ARGUMENT: not such numbers, ragged rows; DATA_LOSS: a damaged
  // file. Both name the file and the line or row.
  virtual absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                               int64_t* values) = 0;
  // NaN and infinity pass; see CheckFinite().
  virtual absl::StatusOr<int64_t> ReadFloats(int64_t max_rows,
                                             float* values) = 0;
  // Of a table with one number a row: the numbers as they are before they are
  // narrowed to float. Readers of nothing wider need not override it.
  virtual absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows, double* values);
};

// A table that can be read any number of times. Immutable; any thread.
class RowSource {
 public:
  virtual ~RowSource() = default;

  // The readers do not need the source after this.
  virtual absl::StatusOr<std::unique_ptr<RowReader>> Open() const = 0;
  // Whether all values are integers; may read the whole table.
  virtual absl::StatusOr<bool> Integral() const = 0;
  // "FILE: line 8" or "FILE: row 7", for messages about row 7.
  virtual std::string Where(int64_t row) const = 0;

  const std::string& name() const { return name_; }
  // Numbers in a row, at least 1.
  int64_t width() const { return width_; }
  // -1: unknown before it is read.
  int64_t rows() const { return rows_; }

 protected:
  RowSource(std::string name, int64_t width, int64_t rows)
      : name_(std::move(name)), width_(width), rows_(rows) {}

 private:
  const std::string name_;
  const int64_t width_;
  const int64_t rows_;
};

// INVALID_ARGUMENT: a row of the table `name` has more than kMaxRowValues.
absl::Status CheckWidth(std::string_view name, int64_t width);

// INVALID_ARGUMENT when one of `rows` rows starting with row `first` of
// `source` holds infinity, or NaN where `nan_allowed` is false.
absl::Status CheckFinite(const RowSource& source, int64_t first,
                         const float* values, int64_t rows, bool nan_allowed);

}  // namespace millrace
