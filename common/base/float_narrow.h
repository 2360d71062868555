// SPDX-License-Identifier: Apache-2.0
// float32 to 16 bits by the vector unit of a CPU. For float_cast.cc and the
// files compiled for one unit, which hold no inline function of others: the
// linker could take theirs for every CPU.
#pragma once

#include <cstddef>

namespace millrace {

// Elements that are converted at a time: `count` is a multiple of it.
inline constexpr size_t kNarrowGroup = 16;

// Whether this CPU has both; defined in float_cast.cc.
bool HasAvx2AndF16c();

void FloatsToFloat16Avx2(const std::byte* in, std::byte* out, size_t count);
void FloatsToBFloat16Avx2(const std::byte* in, std::byte* out, size_t count);
void FloatsToFloat16Avx512(const std::byte* in, std::byte* out, size_t count);
void FloatsToBFloat16Avx512(const std::byte* in, std::byte* out, size_t count);

}  // namespace millrace
