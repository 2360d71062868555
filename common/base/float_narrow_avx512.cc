// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512F; called only where the CPU has it.
#include <immintrin.h>

#include "common/base/float_narrow.h"

namespace millrace {

void FloatsToFloat16Avx512(const std::byte* in, std::byte* out, size_t count) {
  for (size_t i = 0; i < count; i += kNarrowGroup) {
    const __m512 values = _mm512_loadu_ps(in + 4 * i);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i),
                        _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
}

void FloatsToBFloat16Avx512(const std::byte* in, std::byte* out, size_t count) {
  for (size_t i = 0; i < count; i += kNarrowGroup) {
    const __m512i bits = _mm512_loadu_si512(in + 4 * i);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, odd),
                                           _mm512_set1_epi32(0x7fff)),
                          16);
    const __mmask16 nan = _mm512_cmpgt_epi32_mask(
        _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)),
        _mm512_set1_epi32(0x7f800000));
    const __m512i result =
        _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i),
                        _mm512_cvtepi32_epi16(result));
  }
}

}  // namespace millrace
