// SPDX-License-Identifier: Apache-2.0
#include "common/wire/cast.h"

#include "common/base/float_cast.h"
#include "common/base/strings.h"

namespace millrace {

bool CanCast(DType from, DType to) {
  const bool narrow = to == DType::kFloat16 || to == DType::kBFloat16;
  return from == to || (narrow && IsFloat(from));
}

absl::Status CheckCast(const NodeType& type, DType to) {
  if (CanCast(type.feature.dtype, to)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("features of ", type.name, " are ", DTypeName(type.feature.dtype),
             " and cannot be sent as ", DTypeName(to)));
}

}  // namespace millrace
