// SPDX-License-Identifier: Apache-2.0
// LABOR (docs/determinism.md, section 3): the slots with the smallest numbers.
//
// A radix select finds the number of the last pick, 8 bits a pass. Each pass
// computes the numbers anew, since Philox costs less than memory.
#pragma once

#include "common/cuda/sample/hop_step.cuh"
#include "common/random/philox.h"

namespace millrace::cuda {

// Lists of at least this degree are worth a larger block.
inline constexpr int64_t kLongList = 2048;

// Shared memory of a block.
struct LaborSelect {
  static constexpr uint32_t kBins = 256;

  uint32_t bins[kBins];
  uint32_t chosen;                    // the bin with the last pick
  uint32_t before;                    // numbers in the bins before it
  uint32_t below[kMaxBlock / kWarp];  // per warp, see Compact()
  uint32_t equal[kMaxBlock / kWarp];
};

// The numbers of one list.
struct LaborNumbers {
  const PartLists& part;
  DeviceRange range;
  PhiloxKey key;
  uint32_t tree;

  __device__ uint64_t operator[](int64_t slot) const {
    return PhiloxNumber(key, part.originals[range.begin + slot], tree);
  }
};

// The picks are the numbers whose `mask` bits are below `prefix`, and the first
// `ties` of those that equal it.
struct LaborLimit {
  uint64_t prefix = 0;
  uint64_t mask = 0;
  uint32_t ties = 0;
};

// Sets chosen and before for the `wanted`-th number. For the threads of the
// first warp, each of which has eight bins.
__device__ inline void ChooseBin(LaborSelect& select, uint32_t wanted) {
  constexpr uint32_t kMine = LaborSelect::kBins / kWarp;
  const unsigned lane = threadIdx.x;
  const uint32_t* mine = select.bins + lane * kMine;
  uint32_t sum = 0;
  for (uint32_t b = 0; b < kMine; ++b) sum += mine[b];
  uint32_t up_to = sum;
  for (unsigned delta = 1; delta < kWarp; delta *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, up_to, delta);
    if (lane >= delta) up_to += other;
  }
  uint32_t before = up_to - sum;
  if (before >= wanted || up_to < wanted) return;
  uint32_t b = 0;
  while (before + mine[b] < wanted) before += mine[b++];
  select.chosen = lane * kMine + b;
  select.before = before;
}

// All threads of the block must call it.
__device__ inline LaborLimit SelectLimit(const LaborNumbers& numbers,
                                         uint32_t wanted, LaborSelect& select) {
  LaborLimit limit{.ties = wanted};
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (uint32_t b = threadIdx.x; b < LaborSelect::kBins; b += blockDim.x) {
      select.bins[b] = 0;
    }
    __syncthreads();
    for (int64_t slot = threadIdx.x; slot < numbers.range.degree;
         slot += blockDim.x) {
      const uint64_t number = numbers[slot];
      if ((number & limit.mask) == limit.prefix) {
        atomicAdd(&select.bins[number >> shift & 255], 1u);
      }
    }
    __syncthreads();
    if (threadIdx.x < kWarp) ChooseBin(select, limit.ties);
    __syncthreads();
    limit.ties -= select.before;
    limit.prefix |= uint64_t{select.chosen} << shift;
    limit.mask |= uint64_t{255} << shift;
    const bool whole_bin = select.bins[select.chosen] == limit.ties;
    __syncthreads();  // before the bins are cleared
    if (whole_bin) break;
  }
  return limit;
}

// Writes the picks in slot order. All threads of the block must call it.
__device__ inline void Compact(const LaborNumbers& numbers,
                               const LaborLimit& limit, LaborSelect& select,
                               int64_t* slots) {
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const unsigned lanes_before = (1u << lane) - 1;
  uint32_t below = 0, equal = 0;  // numbers in earlier chunks
  for (int64_t base = 0; base < numbers.range.degree; base += blockDim.x) {
    const int64_t slot = base + threadIdx.x;
    const bool valid = slot < numbers.range.degree;
    const uint64_t number = valid ? numbers[slot] & limit.mask : 0;
    const bool is_below = valid && number < limit.prefix;
    const bool is_equal = valid && number == limit.prefix;
    const unsigned below_lanes = __ballot_sync(~0u, is_below);
    const unsigned equal_lanes = __ballot_sync(~0u, is_equal);
    if (lane == 0) {
      select.below[warp] = static_cast<uint32_t>(__popc(below_lanes));
      select.equal[warp] = static_cast<uint32_t>(__popc(equal_lanes));
    }
    __syncthreads();
    uint32_t below_before = below + __popc(below_lanes & lanes_before);
    uint32_t equal_before = equal + __popc(equal_lanes & lanes_before);
    for (unsigned other = 0; other < blockDim.x / kWarp; ++other) {
      if (other < warp) {
        below_before += select.below[other];
        equal_before += select.equal[other];
      }
      below += select.below[other];
      equal += select.equal[other];
    }
    if (is_below || (is_equal && equal_before < limit.ties)) {
      const uint32_t ties =
          equal_before < limit.ties ? equal_before : limit.ties;
      slots[below_before + ties] = numbers.range.begin + slot;
    }
    __syncthreads();  // before the next chunk's counts
  }
}

// Picks from the lists of at least `min_degree` and less than `max_degree`. A
// block for each node: one warp suffices for all but long lists.
__global__ void __launch_bounds__(kMaxBlock)
    PickLabor(HopStep step, int64_t min_degree, int64_t max_degree) {
  __shared__ LaborSelect select;
  if (*step.picks == 0) return;
  const uint64_t size = step.frontier.size();
  for (uint64_t i = blockIdx.x; i < size; i += gridDim.x) {
    const DeviceRange range = step.ranges[i];
    if (range.degree < min_degree || range.degree >= max_degree) continue;
    int64_t* slots = step.slots + step.offsets[i];
    if (range.degree <= step.rule.fanout) {
      for (int64_t slot = threadIdx.x; slot < range.degree;
           slot += blockDim.x) {
        slots[slot] = range.begin + slot;
      }
      continue;
    }
    const LaborNumbers numbers{step.part(range), range, step.key,
                               step.frontier.tree(i)};
    const LaborLimit limit =
        SelectLimit(numbers, static_cast<uint32_t>(step.rule.fanout), select);
    Compact(numbers, limit, select, slots);
  }
}

}  // namespace millrace::cuda
