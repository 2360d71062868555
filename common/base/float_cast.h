// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/base/dtype.h"

namespace millrace {

// Whether `dtype` is a floating-point type (16 to 64 bits).
bool IsFloat(DType dtype);

// Converts `count` floating-point elements to float16, bfloat16 or float32
// (`to`), rounding as float16.h does; float64 is rounded to float32 first.
// `in` and `out` need no alignment and must not overlap. The result does not
// depend on the CPU's vector unit.
void CastFloats(DType from, const std::byte* in, DType to, std::byte* out,
                size_t count);

}  // namespace millrace
