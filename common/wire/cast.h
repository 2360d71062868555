// SPDX-License-Identifier: Apache-2.0
// Conversion of features to narrower dtypes for the wire (see CastFloats).
#pragma once

#include "common/base/dtype.h"

namespace millrace {

// Whether features may be converted: any floats to float16 or bfloat16, and any
// dtype to itself.
bool CanCast(DType from, DType to);

}  // namespace millrace
