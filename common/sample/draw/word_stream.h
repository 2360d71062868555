// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/host_device.h"
#include "common/random/philox.h"
#include "common/sample/draw/draw_domain.h"

namespace millrace {

// The random words of one node in one domain and tree (docs/determinism.md,
// section 2), computed four at a time. `domain` must outlive it.
class WordStream {
 public:
  // `key` must be domain.Key(), which many streams share.
  MILLRACE_HOST_DEVICE WordStream(const DrawDomain& domain, PhiloxKey key,
                                  uint64_t node, uint32_t tree)
      : domain_(domain), key_(key), node_(node), tree_(tree) {}

  MILLRACE_HOST_DEVICE uint32_t Word(uint32_t i) {
    if (const uint32_t block = i / 4; block != block_) {
      words_ = Philox(key_, Counter(i));
      block_ = block;
    }
    return words_[i % 4];
  }

  // bounded(i, n) of the specification, for n >= 1 (Lemire 2019).
  MILLRACE_HOST_DEVICE uint64_t Bounded(uint32_t i, uint64_t n) {
    return n <= kMax32 ? Bounded32(i, static_cast<uint32_t>(n)) : Wide(i, n);
  }

  // wide(i, n) of the specification, for n >= 1.
  MILLRACE_HOST_DEVICE uint64_t Wide(uint32_t i, uint64_t n) {
    using Product = unsigned __int128;
    uint64_t word = Word(2 * i) | uint64_t{Word(2 * i + 1)} << 32;
    Product product = Product{word} * n;
    if (static_cast<uint64_t>(product) < n) [[unlikely]] {
      const uint64_t threshold = (0u - n) % n;
      for (uint32_t retry = 1; static_cast<uint64_t>(product) < threshold;
           ++retry) {
        word = RetryWord(2 * i, retry) | uint64_t{RetryWord(2 * i + 1, retry)}
                                             << 32;
        product = Product{word} * n;
      }
    }
    return static_cast<uint64_t>(product >> 64);
  }

 private:
  static constexpr uint32_t kMax32 = 0xFFFFFFFF;

  MILLRACE_HOST_DEVICE uint32_t Bounded32(uint32_t i, uint32_t n) {
    uint64_t product = uint64_t{Word(i)} * n;
    if (static_cast<uint32_t>(product) < n) [[unlikely]] {
      const uint32_t threshold = (0u - n) % n;
      for (uint32_t retry = 1; static_cast<uint32_t>(product) < threshold;
           ++retry) {
        product = uint64_t{RetryWord(i, retry)} * n;
      }
    }
    return static_cast<uint32_t>(product >> 32);
  }

  MILLRACE_HOST_DEVICE PhiloxWords Counter(uint32_t i) const {
    return {{static_cast<uint32_t>(node_), static_cast<uint32_t>(node_ >> 32),
             tree_, i / 4}};
  }
  MILLRACE_HOST_DEVICE uint32_t RetryWord(uint32_t i, uint32_t retry) const {
    return Philox(domain_.Key(retry), Counter(i))[i % 4];
  }

  const DrawDomain& domain_;
  const PhiloxKey key_;
  const uint64_t node_;
  const uint32_t tree_;
  uint32_t block_ = kMax32;
  PhiloxWords words_{};
};

}  // namespace millrace
