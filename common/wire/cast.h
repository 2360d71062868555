// SPDX-License-Identifier: Apache-2.0
// Features narrowed for the wire, by CastFloats().
#pragma once

#include "common/base/dtype.h"

namespace millrace {

// Floating point (16 to 64 bits) to float16 or bfloat16, and any to itself.
bool CanCast(DType from, DType to);

}  // namespace millrace
