// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/tensor_rows.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/array.h"
#include "common/base/npy.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/ingest/elements.h"

namespace millrace {
namespace {

constexpr int64_t kDropBytes = 4 << 20;

class TensorReader final : public RowReader {
 public:
  TensorReader(std::string name, StoredTensor tensor)
      : name_(std::move(name)),
        tensor_(std::move(tensor)),
        item_(static_cast<int64_t>(ItemBytes(tensor_.dtype))),
        width_(tensor_.sizes.size() == 2 ? tensor_.sizes[1] : 1) {}

  absl::StatusOr<int64_t> ReadIntegers(int64_t max_rows,
                                       int64_t* values) override {
    MILLRACE_RETURN_IF_ERROR(RequireIntegers(name_, tensor_.dtype));
    return Read(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadFloats(int64_t max_rows, float* values) override {
    return Read(max_rows, values);
  }
  absl::StatusOr<int64_t> ReadDoubles(int64_t max_rows,
                                      double* values) override {
    return Read(max_rows, values);
  }

 private:
  template <typename To>
  int64_t Read(int64_t max_rows, To* values) {
    const int64_t rows = std::min(max_rows, tensor_.rows() - next_);
    if (rows == 0) return 0;
    const int64_t row_step = tensor_.strides[0] * item_;
    const int64_t column_step = width_ > 1 ? tensor_.strides[1] * item_ : item_;
    const char* first = tensor_.data + next_ * row_step;
    if (column_step == item_ && row_step == width_ * item_) {
      ConvertElements(tensor_.dtype, first, item_, rows * width_, values);
    } else {
      for (int64_t column = 0; column < width_; ++column) {
        ConvertElements(tensor_.dtype, first + column * column_step, row_step,
                        rows, values + column, width_);
      }
    }
    next_ += rows;
    // Rows that lie one after another, behind which nothing is needed.
    if (row_step >= width_ * item_ && column_step == item_) {
      Drop(next_ * row_step);
    }
    return rows;
  }

  // The first `bytes` are read; now and then gives back their pages.
  void Drop(int64_t bytes) {
    if (bytes < dropped_ + kDropBytes) return;
    const Array all =
        Array::Borrow(DType::kUint8, {bytes}, tensor_.data, nullptr);
    DropRows(all, dropped_, bytes);
    dropped_ = bytes;
  }

  const std::string name_;
  const StoredTensor tensor_;
  const int64_t item_;
  const int64_t width_;
  int64_t next_ = 0;
  int64_t dropped_ = 0;
};

class TensorSource final : public RowSource {
 public:
  TensorSource(std::string name, StoredTensor tensor)
      : RowSource(std::move(name),
                  tensor.sizes.size() == 2 ? tensor.sizes[1] : 1,
                  tensor.rows()),
        tensor_(std::move(tensor)) {}

  absl::StatusOr<std::unique_ptr<RowReader>> Open() const override {
    return std::make_unique<TensorReader>(name(), tensor_);
  }
  absl::StatusOr<bool> Integral() const override {
    return IsIntegerDType(tensor_.dtype);
  }
  std::string Where(int64_t row) const override {
    return StrCat(name(), ": row ", row);
  }

 private:
  const StoredTensor tensor_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const RowSource>> TensorRows(
    std::string name, StoredTensor tensor) {
  const std::vector<int64_t>& sizes = tensor.sizes;
  if (sizes.empty() || sizes.size() > 2 || (sizes.size() == 2 && !sizes[1])) {
    return absl::InvalidArgumentError(
        StrCat(name, ": shape [", absl::StrJoin(sizes, ", "),
               "], but one or two dimensions are needed here"));
  }
  if (sizes.size() == 2) MILLRACE_RETURN_IF_ERROR(CheckWidth(name, sizes[1]));
  return std::make_shared<TensorSource>(std::move(name), std::move(tensor));
}

}  // namespace millrace
