// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2 and F16C; called only where the CPU has both.
#include <immintrin.h>

#include "common/base/float_narrow.h"

namespace millrace {
namespace {

__m128i Float16(__m256 values) {
  return _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
}

// The results are in the low halves of the 32-bit words.
__m256i BFloat16(__m256i bits) {
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, odd), _mm256_set1_epi32(0x7fff)),
      16);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i magnitude =
      _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
  const __m256i nan =
      _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  return _mm256_blendv_epi8(rounded, quiet, nan);
}

}  // namespace

void FloatsToFloat16Avx2(const std::byte* in, std::byte* out, size_t count) {
  for (size_t i = 0; i < count; i += kNarrowGroup) {
    const auto* from = reinterpret_cast<const float*>(in + 4 * i);
    auto* to = reinterpret_cast<__m128i*>(out + 2 * i);
    _mm_storeu_si128(to, Float16(_mm256_loadu_ps(from)));
    _mm_storeu_si128(to + 1, Float16(_mm256_loadu_ps(from + 8)));
  }
}

void FloatsToBFloat16Avx2(const std::byte* in, std::byte* out, size_t count) {
  for (size_t i = 0; i < count; i += kNarrowGroup) {
    const auto* from = reinterpret_cast<const __m256i*>(in + 4 * i);
    // packus packs each 128-bit half separately; taking the quarters in the
    // order 0 2 1 3 restores the order.
    const __m256i packed =
        _mm256_packus_epi32(BFloat16(_mm256_loadu_si256(from)),
                            BFloat16(_mm256_loadu_si256(from + 1)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i),
                        _mm256_permute4x64_epi64(packed, 0b11011000));
  }
}

}  // namespace millrace
