// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2; called only where the CPU has it.
#include <immintrin.h>

#include "common/random/philox_vector.h"

namespace millrace {
namespace {

struct Avx2 {
  using Words = __m256i;
  static constexpr size_t kLanes = 4;

  static Words Set(uint32_t word) { return _mm256_set1_epi64x(word); }
  static Words Load(const uint32_t* nodes) {
    return _mm256_cvtepu32_epi64(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(nodes)));
  }
  static void Store(Words numbers, uint64_t* out) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), numbers);
  }
  static Words Xor(Words a, Words b) { return _mm256_xor_si256(a, b); }
  static Words Times(Words a, uint32_t m) {
    return _mm256_mul_epu32(a, _mm256_set1_epi64x(m));
  }
  static Words High(Words a) { return _mm256_srli_epi64(a, 32); }
  // low + 2^32 * high
  static Words Join(Words low, Words high) {
    return _mm256_blend_epi32(low, _mm256_slli_epi64(high, 32), 0b10101010);
  }
  // Returns one bit per lane.
  static unsigned AtMost(Words numbers, uint64_t limit) {
    // AVX2 compares signed numbers.
    constexpr uint64_t kSign = uint64_t{1} << 63;
    const Words above = _mm256_cmpgt_epi64(
        _mm256_xor_si256(numbers, _mm256_set1_epi64x(kSign)),
        _mm256_set1_epi64x(static_cast<int64_t>(limit ^ kSign)));
    return 0xFu ^ static_cast<unsigned>(
                      _mm256_movemask_pd(_mm256_castsi256_pd(above)));
  }
};

}  // namespace

void PhiloxAvx2(const PhiloxTask& task, const uint32_t* nodes, size_t count,
                PhiloxBlock& block) {
  PhiloxVector<Avx2>(task).Number(nodes, count, block);
}

}  // namespace millrace
