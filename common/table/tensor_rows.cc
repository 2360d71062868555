// SPDX-License-Identifier: Apache-2.0
#include "common/table/tensor_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/array.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"

namespace millrace {
namespace {

// A pass drops pages once it has read kDropBytes in total, and at least
// kDropLineBytes of each row or column that it reads along.
constexpr int64_t kDropBytes = 4 << 20;
constexpr int64_t kDropLineBytes = 16 << 10;
// How far dropping reaches back before the bytes read since the last time. This
// is more than a page, since the first page of a range may be partial.
constexpr int64_t kDropMargin = 64 << 10;

int64_t WidthOf(const StoredTensor& tensor) {
  return tensor.sizes.size() == 2 ? tensor.sizes[1] : 1;
}

template <typename T>
bool IsStoredAs(ElementFormat format) {
  bool same = false;
  WithElementType(format.type, [&]<typename From>(From) {
    same = std::is_same_v<From, T> && !format.big_endian;
  });
  return same;
}

class TensorReader final : public RowReader {
 public:
  TensorReader(std::string name, StoredTensor tensor)
      : name_(std::move(name)),
        tensor_(std::move(tensor)),
        item_(ElementBytes(tensor_.format.type)),
        width_(WidthOf(tensor_)),
        row_step_(tensor_.strides[0] * item_),
        column_step_(width_ > 1 ? tensor_.strides[1] * item_ : item_) {
    if (tensor_.rows() == 0) return;
    AdviseAccess(Bytes((tensor_.rows() - 1) * row_step_ +
                       (width_ - 1) * column_step_ + item_),
                 Access::kSequential);
  }

  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    const ElementType type = tensor_.format.type;
    MILLRACE_RETURN_IF_ERROR(RequireIntegers(name_, type));
    const int64_t first = next_;
    const int64_t rows = Read(max_rows, values);
    MILLRACE_RETURN_IF_ERROR(
        RefuseLargeIntegers(name_, type, first, values, rows, width_));
    return rows;
  }
  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return Read(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows,
                                      double* values) override {
    return Read(max_rows, values);
  }

 private:
  bool dense() const {
    return column_step_ == item_ && row_step_ == width_ * item_;
  }

  template <typename To>
  int64_t Read(int64_t max_rows, To* values) {
    const int64_t rows = std::min(max_rows, tensor_.rows() - next_);
    if (rows == 0) return 0;
    const char* first = tensor_.data + next_ * row_step_;
    if (dense() && IsStoredAs<To>(tensor_.format)) {
      std::memcpy(values, first, static_cast<size_t>(rows * row_step_));
    } else if (dense()) {
      ConvertElements(tensor_.format, first, item_, rows * width_, values);
    } else {
      for (int64_t column = 0; column < width_; ++column) {
        ConvertElements(tensor_.format, first + column * column_step_,
                        row_step_, rows, values + column, width_);
      }
    }
    next_ += rows;
    Drop();
    return rows;
  }

  // Drops the pages behind the reading position if there are enough of them.
  void Drop() {
    const int64_t line = (next_ - dropped_) * row_step_;
    if (row_step_ >= width_ * column_step_) {
      if (line < kDropBytes) return;
      DropBytes(0);
    } else {
      if (line < kDropLineBytes || line * width_ < kDropBytes) return;
      for (int64_t column = 0; column < width_; ++column) {
        DropBytes(column * column_step_);
      }
    }
    dropped_ = next_;
  }

  // Drops pages of the row or column that begins `offset` bytes after the first
  // element.
  void DropBytes(int64_t offset) {
    const int64_t begin =
        std::max<int64_t>(offset + dropped_ * row_step_ - kDropMargin, 0);
    const int64_t end = offset + next_ * row_step_ - (row_step_ - item_);
    DropRows(Bytes(end), begin, end);
  }

  Array Bytes(int64_t count) const {
    return Array::Borrow(DType::kUint8, {count}, tensor_.data, nullptr);
  }

  const std::string name_;
  const StoredTensor tensor_;
  const int64_t item_;
  const int64_t width_;
  const int64_t row_step_;     // bytes
  const int64_t column_step_;  // bytes
  int64_t next_ = 0;           // rows
  int64_t dropped_ = 0;        // rows
};

class TensorSource final : public RowSource {
 public:
  TensorSource(std::string name, StoredTensor tensor, const char* unit)
      : RowSource(std::move(name), WidthOf(tensor), tensor.rows()),
        tensor_(std::move(tensor)),
        unit_(unit) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    return std::make_unique<TensorReader>(name(), tensor_);
  }
  absl::StatusOr<bool> Integral() const override {
    return RequireIntegers(name(), tensor_.format.type).ok();
  }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": ", unit_, " ", row);
  }

 private:
  const StoredTensor tensor_;
  const std::string unit_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RowSource>> TensorRows(std::string name,
                                                      StoredTensor tensor,
                                                      const char* unit) {
  const std::vector<int64_t>& sizes = tensor.sizes;
  if (sizes.empty() || sizes.size() > 2 || (sizes.size() == 2 && !sizes[1])) {
    return absl::InvalidArgumentError(
        StrCat(name, ": shape [", absl::StrJoin(sizes, ", "),
               "], but one or two dimensions are needed here"));
  }
  if (sizes.size() == 2) MILLRACE_RETURN_IF_ERROR(CheckWidth(name, sizes[1]));
  return std::make_unique<TensorSource>(std::move(name), std::move(tensor),
                                        unit);
}

}  // namespace millrace
