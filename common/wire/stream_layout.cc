// SPDX-License-Identifier: Apache-2.0
#include "common/wire/stream_layout.h"

#include <utility>

#include "common/base/field_error.h"
#include "common/base/round_up.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr uint64_t kAlignment = 8;

// Returns false on overflow or a negative dimension.
bool ArrayBytes(const ArrayInfo& info, uint64_t& bytes) {
  bytes = ItemBytes(info.dtype);
  for (int64_t dimension : info.shape) {
    if (dimension < 0 || __builtin_mul_overflow(
                             bytes, static_cast<uint64_t>(dimension), &bytes)) {
      return false;
    }
  }
  return true;
}

}  // namespace

size_t ArrayInfo::total_bytes() const {
  size_t bytes = ItemBytes(dtype);
  for (int64_t dimension : shape) bytes *= static_cast<size_t>(dimension);
  return bytes;
}

uint64_t StreamLayout::Append(ArrayKind kind, int index, DType dtype,
                              std::vector<int64_t> shape) {
  ArrayInfo info{kind, index, dtype, std::move(shape),
                 RoundUp(total_bytes, kAlignment)};
  total_bytes = info.offset + info.total_bytes();
  arrays.push_back(std::move(info));
  return arrays.back().offset;
}

absl::Status CheckLayout(const StreamLayout& layout, uint64_t max_bytes) {
  if (layout.total_bytes > max_bytes) {
    return FieldStatus(
        absl::StatusCode::kOutOfRange,
        {.problem = FieldError::Problem::kTooMuch,
         .field = "batch_size",
         .value = StrCat("the stream announces ", layout.total_bytes, " bytes"),
         .limit = StrCat(max_bytes)});
  }
  uint64_t end = 0;
  for (size_t i = 0; i < layout.arrays.size(); ++i) {
    const ArrayInfo& info = layout.arrays[i];
    uint64_t bytes = 0;
    if (ItemBytes(info.dtype) == 0 || !ArrayBytes(info, bytes) ||
        info.offset % kAlignment != 0 || info.offset < end ||
        info.offset > layout.total_bytes ||
        bytes > layout.total_bytes - info.offset) {
      return absl::InvalidArgumentError(StrCat(
          "array ", i, " of the stream (", ArrayKindName(info.kind), " ",
          info.index, ", offset ", info.offset, ") does not fit between byte ",
          end, " and byte ", layout.total_bytes));
    }
    end = info.offset + bytes;
  }
  return absl::OkStatus();
}

}  // namespace millrace
