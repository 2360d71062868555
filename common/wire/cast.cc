// SPDX-License-Identifier: Apache-2.0
#include "common/wire/cast.h"

#include "common/base/float_cast.h"

namespace millrace {

bool CanCast(DType from, DType to) {
  const bool narrow = to == DType::kFloat16 || to == DType::kBFloat16;
  return from == to || (narrow && IsFloat(from));
}

}  // namespace millrace
