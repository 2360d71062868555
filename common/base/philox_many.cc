// SPDX-License-Identifier: Apache-2.0
#include "common/base/philox_many.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <cstddef>
#include <limits>

namespace millrace {
namespace {

// What all ways of computing share.
struct Numbering {
  PhiloxKey key;
  uint32_t c2;
  uint64_t limit;
  int64_t first;
  std::vector<NumberedNode>& out;
};

template <typename Id>
void OneByOne(const Numbering& numbering, std::span<const Id> nodes,
              size_t from) {
  for (size_t i = from; i < nodes.size(); ++i) {
    const uint64_t n = nodes[i];
    const PhiloxWords words = Philox(
        numbering.key, {static_cast<uint32_t>(n),
                        static_cast<uint32_t>(n >> 32), numbering.c2, 0});
    const uint64_t number = words[0] | uint64_t{words[1]} << 32;
    if (number <= numbering.limit) {
      numbering.out.push_back(
          {number, numbering.first + static_cast<int64_t>(i)});
    }
  }
}

#if defined(__x86_64__)

// Random123's constants of Philox4x32: multipliers, and what the key grows by
// from round to round.
constexpr int kRounds = 10;
constexpr long long kM0 = 0xD2511F53;
constexpr long long kM1 = 0xCD9E8D57;
constexpr uint32_t kW0 = 0x9E3779B9;
constexpr uint32_t kW1 = 0xBB67AE85;

// Appends the lanes whose bit is set in `mask`; lane 0 is nodes[at].
template <size_t kLanes>
void Take(const Numbering& numbering,
          const std::array<uint64_t, kLanes>& numbers, unsigned mask,
          size_t at) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    numbering.out.push_back(
        {numbers[lane], numbering.first + static_cast<int64_t>(at + lane)});
  }
}

// A lane is 64 bits with one 32-bit word of the state; the multiplication
// reads the low half only, so the high halves may hold anything.
// Returns how many nodes were done.
__attribute__((target("avx2"))) size_t Avx2(const Numbering& numbering,
                                            std::span<const uint32_t> nodes) {
  constexpr size_t kLanes = 4;
  // AVX2 compares signed numbers.
  const __m256i sign = _mm256_set1_epi64x(std::numeric_limits<int64_t>::min());
  const __m256i limit = _mm256_xor_si256(
      _mm256_set1_epi64x(static_cast<int64_t>(numbering.limit)), sign);
  // The keys of the rounds.
  __m256i k0[kRounds], k1[kRounds];
  for (uint32_t round = 0; round < kRounds; ++round) {
    k0[round] = _mm256_set1_epi64x(numbering.key[0] + round * kW0);
    k1[round] = _mm256_set1_epi64x(numbering.key[1] + round * kW1);
  }
  const __m256i m0 = _mm256_set1_epi64x(kM0);
  const __m256i m1 = _mm256_set1_epi64x(kM1);
  size_t i = 0;
  for (; i + kLanes <= nodes.size(); i += kLanes) {
    const auto* in = reinterpret_cast<const __m128i*>(nodes.data() + i);
    __m256i x0 = _mm256_cvtepu32_epi64(_mm_loadu_si128(in));
    __m256i x1 = _mm256_setzero_si256();
    __m256i x2 = _mm256_set1_epi64x(numbering.c2);
    __m256i x3 = _mm256_setzero_si256();
    for (int round = 0; round < kRounds; ++round) {
      const __m256i p0 = _mm256_mul_epu32(x0, m0);
      const __m256i p1 = _mm256_mul_epu32(x2, m1);
      const __m256i y1 = _mm256_xor_si256(x1, k0[round]);
      const __m256i y3 = _mm256_xor_si256(x3, k1[round]);
      x0 = _mm256_xor_si256(_mm256_srli_epi64(p1, 32), y1);
      x1 = p1;
      x2 = _mm256_xor_si256(_mm256_srli_epi64(p0, 32), y3);
      x3 = p0;
    }
    const __m256i words =
        _mm256_blend_epi32(x0, _mm256_slli_epi64(x1, 32), 0b10101010);
    const __m256i above =
        _mm256_cmpgt_epi64(_mm256_xor_si256(words, sign), limit);
    const auto mask =
        static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(above)));
    if (mask == 0xF) continue;
    alignas(32) std::array<uint64_t, kLanes> numbers;
    _mm256_store_si256(reinterpret_cast<__m256i*>(numbers.data()), words);
    Take(numbering, numbers, ~mask, i);
  }
  return i;
}

__attribute__((target("avx512f"))) size_t Avx512(
    const Numbering& numbering, std::span<const uint32_t> nodes) {
  constexpr size_t kLanes = 8;
  const __m512i limit =
      _mm512_set1_epi64(static_cast<int64_t>(numbering.limit));
  // The keys of the rounds.
  __m512i k0[kRounds], k1[kRounds];
  for (uint32_t round = 0; round < kRounds; ++round) {
    k0[round] = _mm512_set1_epi64(numbering.key[0] + round * kW0);
    k1[round] = _mm512_set1_epi64(numbering.key[1] + round * kW1);
  }
  const __m512i m0 = _mm512_set1_epi64(kM0);
  const __m512i m1 = _mm512_set1_epi64(kM1);
  const __m512i low = _mm512_set1_epi64(0xFFFFFFFF);
  size_t i = 0;
  for (; i + kLanes <= nodes.size(); i += kLanes) {
    const auto* in = reinterpret_cast<const __m256i*>(nodes.data() + i);
    __m512i x0 = _mm512_cvtepu32_epi64(_mm256_loadu_si256(in));
    __m512i x1 = _mm512_setzero_si512();
    __m512i x2 = _mm512_set1_epi64(numbering.c2);
    __m512i x3 = _mm512_setzero_si512();
    for (int round = 0; round < kRounds; ++round) {
      const __m512i p0 = _mm512_mul_epu32(x0, m0);
      const __m512i p1 = _mm512_mul_epu32(x2, m1);
      const __m512i y1 = _mm512_xor_si512(x1, k0[round]);
      const __m512i y3 = _mm512_xor_si512(x3, k1[round]);
      x0 = _mm512_xor_si512(_mm512_srli_epi64(p1, 32), y1);
      x1 = p1;
      x2 = _mm512_xor_si512(_mm512_srli_epi64(p0, 32), y3);
      x3 = p0;
    }
    const __m512i words =
        _mm512_or_si512(_mm512_and_si512(x0, low), _mm512_slli_epi64(x1, 32));
    const unsigned mask = _mm512_cmple_epu64_mask(words, limit);
    if (mask == 0) continue;
    alignas(64) std::array<uint64_t, kLanes> numbers;
    _mm512_store_si512(numbers.data(), words);
    Take(numbering, numbers, mask, i);
  }
  return i;
}

size_t InLanes(const Numbering& numbering, std::span<const uint32_t> nodes) {
  static const bool avx512 = __builtin_cpu_supports("avx512f");
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx512) return Avx512(numbering, nodes);
  return avx2 ? Avx2(numbering, nodes) : 0;
}

#else

size_t InLanes(const Numbering&, std::span<const uint32_t>) { return 0; }

#endif

}  // namespace

void PhiloxAtMost(PhiloxKey key, std::span<const uint32_t> nodes, uint32_t c2,
                  uint64_t limit, int64_t first,
                  std::vector<NumberedNode>& out) {
  const Numbering numbering = {key, c2, limit, first, out};
  OneByOne(numbering, nodes, InLanes(numbering, nodes));
}

void PhiloxAtMost(PhiloxKey key, std::span<const uint64_t> nodes, uint32_t c2,
                  uint64_t limit, int64_t first,
                  std::vector<NumberedNode>& out) {
  OneByOne({key, c2, limit, first, out}, nodes, 0);
}

}  // namespace millrace
