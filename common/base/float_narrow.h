// SPDX-License-Identifier: Apache-2.0
// Conversion of float32 to 16 bits with the CPU's vector unit. Included only by
// float_cast.cc and the files compiled for one unit. The latter must not
// include inline functions from elsewhere: the linker might use the copies
// compiled there, which not every CPU can run, throughout the program.
#pragma once

#include <cstddef>

namespace millrace {

// Number of elements converted at a time; `count` must be a multiple of it.
inline constexpr size_t kNarrowGroup = 16;

// Whether this CPU has AVX2 and F16C; defined in float_cast.cc.
bool HasAvx2AndF16c();

void FloatsToFloat16Avx2(const std::byte* in, std::byte* out, size_t count);
void FloatsToBFloat16Avx2(const std::byte* in, std::byte* out, size_t count);
void FloatsToFloat16Avx512(const std::byte* in, std::byte* out, size_t count);
void FloatsToBFloat16Avx512(const std::byte* in, std::byte* out, size_t count);

}  // namespace millrace
