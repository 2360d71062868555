// SPDX-License-Identifier: Apache-2.0
// Weighted picks (docs/determinism.md, section 3).
#pragma once

#include "common/cuda/sample/hop_step.cuh"
#include "common/sample/draw/word_stream.h"

namespace millrace::cuda {

// The sums of the integer weights of one list, which is not empty.
struct WeightSums {
  const uint64_t* sums;
  int64_t size;

  __device__ uint64_t total() const { return sums[size - 1]; }
  __device__ uint64_t Before(int64_t slot) const {
    return slot == 0 ? 0 : sums[slot - 1];
  }
  __device__ uint64_t Of(int64_t slot) const {
    return sums[slot] - Before(slot);
  }
  // The slot s with Before(s) <= x < Before(s + 1); reports sums that have
  // none.
  __device__ int64_t SlotAt(uint64_t x, uint32_t* trouble) const {
    const int64_t slot = UpperBound(sums, size, x);
    if (slot < size) return slot;
    Report(trouble, kOddWeights);
    return size - 1;
  }
};

__device__ inline WeightSums WeightsOf(const HopStep& step,
                                       const DeviceRange& range) {
  return {step.part(range).weight_sums + range.begin, range.degree};
}

// Weighted picks with replacement. A thread for each pick.
__global__ void __launch_bounds__(kMaxBlock)
    PickWeightedRepeatedly(HopStep step) {
  const uint64_t picks = *step.picks;
  for (uint64_t pick = ThreadOfGrid(); pick < picks; pick += ThreadsOfGrid()) {
    const uint64_t i = step.owner(pick);
    const DeviceRange range = step.ranges[i];
    const WeightSums weights = WeightsOf(step, range);
    WordStream words(step.domain, step.key, step.original(range),
                     step.frontier.tree(i));
    const auto draw = static_cast<uint32_t>(pick - step.offsets[i]);
    step.slots[pick] =
        range.begin +
        weights.SlotAt(words.Wide(draw, weights.total()), step.trouble);
  }
}

// All slots of positive weight. Returns their number, at most `count`.
__device__ inline int64_t PickPositive(const WeightSums& weights, int64_t begin,
                                       int64_t count, int64_t* slots) {
  int64_t picked = 0;
  for (int64_t slot = 0; slot < weights.size && picked < count; ++slot) {
    if (weights.Of(slot) > 0) slots[picked++] = begin + slot;
  }
  return picked;
}

// Successive draws with the picks kept sorted. A draw steps over the weights of
// all picks at or below it. Returns the number of picks, at most `count`.
__device__ inline int64_t DrawWeighted(const HopStep& step, uint64_t i,
                                       const DeviceRange& range, int64_t count,
                                       int64_t* slots) {
  const WeightSums weights = WeightsOf(step, range);
  WordStream words(step.domain, step.key, step.original(range),
                   step.frontier.tree(i));
  uint64_t left = weights.total();
  int64_t picked = 0;
  while (picked < count && left > 0) {
    uint64_t x = words.Wide(static_cast<uint32_t>(picked), left);
    int64_t at = 0;
    for (; at < picked; ++at) {
      const int64_t taken = slots[at] - range.begin;
      if (x < weights.Before(taken)) break;
      x += weights.Of(taken);
    }
    const int64_t slot = weights.SlotAt(x, step.trouble);
    const uint64_t weight = weights.Of(slot);
    left -= weight < left ? weight : left;
    for (int64_t above = picked; above > at; --above) {
      slots[above] = slots[above - 1];
    }
    slots[at] = range.begin + slot;
    ++picked;
  }
  return picked;
}

// Weighted picks without replacement. A thread for each node.
__global__ void __launch_bounds__(kMaxBlock) PickWeighted(HopStep step) {
  if (*step.picks == 0) return;
  const uint64_t size = step.frontier.size();
  for (uint64_t i = ThreadOfGrid(); i < size; i += ThreadsOfGrid()) {
    const DeviceRange range = step.ranges[i];
    const auto count = static_cast<int64_t>(step.counts[i]);
    if (count == 0) continue;
    int64_t* slots = step.slots + step.offsets[i];
    int64_t picked =
        step.rule.fanout >= range.degree
            ? PickPositive(WeightsOf(step, range), range.begin, count, slots)
            : DrawWeighted(step, i, range, count, slots);
    if (picked < count) Report(step.trouble, kOddWeights);
    for (; picked < count; ++picked) slots[picked] = range.begin;
  }
}

}  // namespace millrace::cuda
