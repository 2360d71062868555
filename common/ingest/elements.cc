// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/elements.h"

#include "common/base/strings.h"

namespace millrace {

bool IsIntegerDType(DType dtype) {
  return dtype == DType::kUint8 || dtype == DType::kInt8 ||
         dtype == DType::kInt32 || dtype == DType::kUint32 ||
         dtype == DType::kInt64 || dtype == DType::kUint64;
}

absl::Status RequireIntegers(const std::string& name, DType dtype) {
  if (IsIntegerDType(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(name, ": dtype ", DTypeName(dtype),
                                           ", but integers are needed here"));
}

absl::Status RefuseLargeIntegers(const std::string& name, DType dtype,
                                 int64_t first, const int64_t* values,
                                 int64_t rows, int64_t width) {
  if (dtype != DType::kUint64) return absl::OkStatus();
  for (int64_t i = 0; i < rows * width; ++i) {
    if (values[i] >= 0) continue;
    return absl::InvalidArgumentError(
        StrCat(name, ": row ", first + i / width, ": ",
               static_cast<uint64_t>(values[i]),
               " is above the largest integer, 2^63 - 1"));
  }
  return absl::OkStatus();
}

}  // namespace millrace
