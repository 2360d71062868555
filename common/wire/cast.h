// SPDX-License-Identifier: Apache-2.0
// Features narrowed for the wire.
#pragma once

#include <cstddef>
#include <span>

#include "common/base/dtype.h"

namespace millrace {

// Floating point (16 to 64 bits) to float16 or bfloat16, and any to itself.
bool CanCast(DType from, DType to);

// Converts `count` elements, to the nearest (ties to even; through float32);
// too large becomes infinity, NaN stays NaN. CanCast(from, to) holds. `in` and
// `out` need no alignment and do not overlap.
void CastElements(DType from, const std::byte* in, DType to, std::byte* out,
                  size_t count);

}  // namespace millrace
