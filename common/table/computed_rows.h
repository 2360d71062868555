// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/table/row_source.h"

namespace millrace {

// A table whose rows are computed when they are read. T, the type of the
// numbers, is int64_t or float; integers can also be read as floats.
template <typename T>
class ComputedRows final : public RowSource {
 public:
  // Writes the `width` numbers of a row to `out`. Several readers may call it
  // at the same time, so it must not have side effects.
  using Fill = std::function<void(int64_t row, T* out)>;

  ComputedRows(std::string name, int64_t width, int64_t rows, Fill fill)
      : RowSource(std::move(name), width, rows), fill_(std::move(fill)) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    return std::make_unique<Reader>(*this);
  }
  absl::StatusOr<bool> Integral() const override {
    return std::is_same_v<T, int64_t>;
  }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": row ", row);
  }

 private:
  class Reader final : public RowReader {
   public:
    explicit Reader(const ComputedRows& source)
        : name_(source.name()),
          fill_(source.fill_),
          width_(source.width()),
          rows_(source.rows()) {}

    absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                         int64_t* values) override {
      if constexpr (std::is_same_v<T, float>) {
        return absl::InvalidArgumentError(
            StrCat(name_, ": these are not integers"));
      } else {
        return Read(max_rows, values);
      }
    }
    absl::StatusOr<int64_t> ReadFloats(int64_t max_rows,
                                       float* values) override {
      return Read(max_rows, values);
    }

   private:
    template <typename To>
    int64_t Read(int64_t max_rows, To* values) {
      const int64_t count = std::min(max_rows, rows_ - next_);
      std::vector<T> row(static_cast<size_t>(width_));
      for (int64_t i = 0; i < count; ++i, values += width_) {
        fill_(next_++, row.data());
        std::transform(row.begin(), row.end(), values,
                       [](T value) { return static_cast<To>(value); });
      }
      return count;
    }

    const std::string name_;
    const Fill fill_;
    const int64_t width_;
    const int64_t rows_;
    int64_t next_ = 0;
  };

  const Fill fill_;
};

}  // namespace millrace
