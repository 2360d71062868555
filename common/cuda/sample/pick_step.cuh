// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cuda/sample/hop_step.cuh"
#include "common/cuda/sample/pick_labor.cuh"
#include "common/cuda/sample/pick_uniform.cuh"
#include "common/cuda/sample/pick_weighted.cuh"

namespace millrace::cuda {

// Picks slots from the lists of a step that has at most `nodes` nodes and
// `picks` picks, both positive.
template <typename Queue>
void PickByRule(Queue& queue, const HopStep& step, uint64_t nodes,
                uint64_t picks) {
  constexpr uint64_t kWarpsOfBlock = kMaxBlock / kWarp;
  const HopRule& rule = step.rule;
  if (rule.takes_all() || rule.rule == DrawRule::kLast) {
    return queue.LaunchEach(PickLastSlots, picks, step);
  }
  if (rule.rule == DrawRule::kLabor) {
    queue.LaunchBlocks(PickLabor, nodes, kWarp, step, int64_t{0}, kLongList);
    constexpr int64_t kNoLimit = 0x7FFFFFFFFFFFFFFF;
    return queue.LaunchBlocks(PickLabor, nodes, kMaxBlock, step, kLongList,
                              kNoLimit);
  }
  if (rule.rule == DrawRule::kWeighted) {
    return rule.replace ? queue.LaunchEach(PickWeightedRepeatedly, picks, step)
                        : queue.LaunchEach(PickWeighted, nodes, step);
  }
  if (rule.replace) return queue.LaunchEach(PickRepeatedly, picks, step);
  return rule.fanout <= static_cast<int32_t>(kWarp)
             ? queue.LaunchBlocks(PickDistinctByWarp,
                                  (nodes + kWarpsOfBlock - 1) / kWarpsOfBlock,
                                  kMaxBlock, step)
             : queue.LaunchBlocks(PickDistinctByBlock, nodes, kMaxBlock, step);
}

}  // namespace millrace::cuda
