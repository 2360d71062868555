// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/pick_slots.h"

#include <bit>
#include <cmath>

#include "absl/container/flat_hash_set.h"

namespace millrace {
namespace {

// Up to this many picks, the quadratic algorithms are faster.
constexpr int32_t kFew = 48;

// Floyd's algorithm with the picks kept sorted. `j` exceeds all earlier picks,
// so it is appended if a draw is repeated.
void DrawFewDistinct(WordStream& words, ListRange list, int32_t k,
                     std::vector<int64_t>& slots) {
  const size_t first = slots.size();
  for (int32_t i = 0; i < k; ++i) {
    const int64_t j = list.degree - k + i;
    const int64_t pick = static_cast<int64_t>(words.Bounded(i, j + 1));
    size_t at = slots.size();
    while (at > first && slots[at - 1] > list.begin + pick) --at;
    const bool repeated = at > first && slots[at - 1] == list.begin + pick;
    if (repeated) {
      slots.push_back(list.begin + j);
    } else {
      slots.insert(slots.begin() + static_cast<ptrdiff_t>(at),
                   list.begin + pick);
    }
  }
}

void DrawManyDistinct(WordStream& words, ListRange list, int32_t k,
                      std::vector<int64_t>& slots) {
  const size_t first = slots.size();
  absl::flat_hash_set<int64_t> picked;
  picked.reserve(k);
  for (int32_t i = 0; i < k; ++i) {
    const int64_t j = list.degree - k + i;
    const int64_t pick = static_cast<int64_t>(words.Bounded(i, j + 1));
    const int64_t slot = picked.insert(pick).second ? pick : j;
    picked.insert(slot);
    slots.push_back(list.begin + slot);
  }
  std::sort(slots.begin() + static_cast<ptrdiff_t>(first), slots.end());
}

class Weights {
 public:
  Weights(ListRange list, std::span<const uint64_t> sums)
      : begin_(list.begin), sums_(sums.subspan(list.begin, list.degree)) {}

  uint64_t total() const { return sums_.empty() ? 0 : sums_.back(); }
  int64_t begin() const { return begin_; }
  size_t size() const { return sums_.size(); }
  uint64_t Before(size_t slot) const { return slot == 0 ? 0 : sums_[slot - 1]; }
  uint64_t Of(size_t slot) const { return sums_[slot] - Before(slot); }

  // The slot s with Before(s) <= x < Before(s + 1).
  size_t SlotAt(uint64_t x) const {
    const auto at = std::upper_bound(sums_.begin(), sums_.end(), x);
    const auto slot = static_cast<size_t>(at - sums_.begin());
    return std::min(slot, sums_.size() - 1);  // matters only in a damaged file
  }

 private:
  const int64_t begin_;
  const std::span<const uint64_t> sums_;
};

void PickPositive(const Weights& weights, std::vector<int64_t>& slots) {
  for (size_t slot = 0; slot < weights.size(); ++slot) {
    if (weights.Of(slot) > 0) {
      slots.push_back(weights.begin() + static_cast<int64_t>(slot));
    }
  }
}

// Successive draws with the picks kept sorted. A draw steps over the weights of
// all picks at or below it.
void DrawFewWeighted(WordStream& words, const Weights& weights, int32_t k,
                     std::vector<int64_t>& slots) {
  const size_t first = slots.size();
  uint64_t left = weights.total();
  for (int32_t i = 0; i < k && left > 0; ++i) {
    uint64_t x = words.Wide(i, left);
    size_t at = first;
    for (; at < slots.size(); ++at) {
      const auto picked = static_cast<size_t>(slots[at] - weights.begin());
      if (x < weights.Before(picked)) break;
      x += weights.Of(picked);
    }
    const size_t slot = weights.SlotAt(x);
    left -= std::min(left, weights.Of(slot));
    slots.insert(slots.begin() + static_cast<ptrdiff_t>(at),
                 weights.begin() + static_cast<int64_t>(slot));
  }
}

// Successive draws from a Fenwick tree of the weights that are left.
void DrawManyWeighted(WordStream& words, const Weights& weights, int32_t k,
                      std::vector<int64_t>& slots) {
  const size_t first = slots.size();
  const size_t size = weights.size();
  std::vector<uint64_t> tree(size + 1);  // 1-based
  for (size_t i = 1; i <= size; ++i) {
    tree[i] = weights.Before(i) - weights.Before(i - (i & (0 - i)));
  }
  uint64_t left = weights.total();
  for (int32_t i = 0; i < k && left > 0; ++i) {
    uint64_t x = words.Wide(i, left);
    size_t slot = 0;
    for (size_t step = std::bit_floor(size); step > 0; step /= 2) {
      if (slot + step <= size && tree[slot + step] <= x) {
        slot += step;
        x -= tree[slot];
      }
    }
    slot = std::min(slot, size - 1);  // matters only in a damaged file
    const uint64_t weight = weights.Of(slot);
    for (size_t j = slot + 1; j <= size; j += j & (0 - j)) tree[j] -= weight;
    left -= std::min(left, weight);
    slots.push_back(weights.begin() + static_cast<int64_t>(slot));
  }
  std::sort(slots.begin() + static_cast<ptrdiff_t>(first), slots.end());
}

}  // namespace

uint64_t RankLimit(int32_t fanout, int64_t degree) {
  // With this many, about one list in a thousand has to be numbered again.
  const double enough = fanout + 3 * std::sqrt(double{1} * fanout) + 3;
  const double share = enough / static_cast<double>(degree);
  return share >= 1 ? std::numeric_limits<uint64_t>::max()
                    : static_cast<uint64_t>(share * 0x1p64);
}

void PickUniform(WordStream& words, ListRange list, int32_t fanout,
                 bool replace, std::vector<int64_t>& slots) {
  if (fanout == kAllNeighbors || (!replace && fanout >= list.degree)) {
    PickEverySlot(list, slots);
  } else if (list.degree == 0) {
    return;
  } else if (replace) {
    for (int32_t i = 0; i < fanout; ++i) {
      slots.push_back(list.begin +
                      static_cast<int64_t>(words.Bounded(i, list.degree)));
    }
  } else if (fanout <= kFew) {
    DrawFewDistinct(words, list, fanout, slots);
  } else {
    DrawManyDistinct(words, list, fanout, slots);
  }
}

void PickWeighted(WordStream& words, ListRange list,
                  std::span<const uint64_t> sums, int32_t fanout, bool replace,
                  std::vector<int64_t>& slots) {
  if (fanout == kAllNeighbors) return PickEverySlot(list, slots);
  const Weights weights(list, sums);
  if (weights.total() == 0) return;
  if (replace) {
    for (int32_t i = 0; i < fanout; ++i) {
      const size_t slot = weights.SlotAt(words.Wide(i, weights.total()));
      slots.push_back(list.begin + static_cast<int64_t>(slot));
    }
  } else if (fanout >= list.degree) {
    // This many draws leave out no slot of positive weight.
    PickPositive(weights, slots);
  } else if (fanout <= kFew) {
    DrawFewWeighted(words, weights, fanout, slots);
  } else {
    DrawManyWeighted(words, weights, fanout, slots);
  }
}

}  // namespace millrace
