// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512F; called only where the CPU has it.
#include <immintrin.h>

#include "common/random/philox_vector.h"

namespace millrace {
namespace {

struct Avx512 {
  using Words = __m512i;
  static constexpr size_t kLanes = 8;

  static Words Set(uint32_t word) { return _mm512_set1_epi64(word); }
  static Words Load(const uint32_t* nodes) {
    return _mm512_cvtepu32_epi64(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(nodes)));
  }
  static void Store(Words numbers, uint64_t* out) {
    _mm512_storeu_si512(out, numbers);
  }
  static Words Xor(Words a, Words b) { return _mm512_xor_si512(a, b); }
  static Words Times(Words a, uint32_t m) {
    return _mm512_mul_epu32(a, _mm512_set1_epi64(m));
  }
  static Words High(Words a) { return _mm512_srli_epi64(a, 32); }
  // low + 2^32 * high
  static Words Join(Words low, Words high) {
    return _mm512_mask_blend_epi32(0xAAAA, low, _mm512_slli_epi64(high, 32));
  }
  // Returns one bit per lane.
  static unsigned AtMost(Words numbers, uint64_t limit) {
    return _mm512_cmple_epu64_mask(
        numbers, _mm512_set1_epi64(static_cast<int64_t>(limit)));
  }
};

}  // namespace

void PhiloxAvx512(const PhiloxTask& task, const uint32_t* nodes, size_t count,
                  PhiloxBlock& block) {
  PhiloxVector<Avx512>(task).Number(nodes, count, block);
}

}  // namespace millrace
