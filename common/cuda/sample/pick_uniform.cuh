// SPDX-License-Identifier: Apache-2.0
// The rules without weights, except LABOR (docs/determinism.md, section 3).
//
// Without replacement, all draws of Floyd's algorithm are made at once. Draw i
// takes x_i, or j_i = degree - fanout + i if x_i was taken before: by an equal
// x, or by an earlier draw p that took j_p = x_i. So draw i takes j_i if an
// earlier draw has the same x ("repeated"), or if p = x_i - (degree - fanout)
// is an earlier draw that took j_p.
#pragma once

#include "common/cuda/sample/hop_job.h"
#include "common/cuda/sample/hop_step.cuh"
#include "common/sample/draw/word_stream.h"

namespace millrace::cuda {

// Picks the last slots of every list, as many as its count: all slots if that
// is the degree. A thread for each pick, so that hubs are shared evenly.
__global__ void __launch_bounds__(kMaxBlock) PickLastSlots(HopStep step) {
  const uint64_t picks = *step.picks;
  for (uint64_t pick = ThreadOfGrid(); pick < picks; pick += ThreadsOfGrid()) {
    const uint64_t i = step.owner(pick);
    const DeviceRange range = step.ranges[i];
    const int64_t left_out =
        range.degree - static_cast<int64_t>(step.counts[i]);
    step.slots[pick] =
        range.begin + left_out + static_cast<int64_t>(pick - step.offsets[i]);
  }
}

// Uniform picks with replacement. A thread for each pick.
__global__ void __launch_bounds__(kMaxBlock) PickRepeatedly(HopStep step) {
  const uint64_t picks = *step.picks;
  for (uint64_t pick = ThreadOfGrid(); pick < picks; pick += ThreadsOfGrid()) {
    const uint64_t i = step.owner(pick);
    const DeviceRange range = step.ranges[i];
    WordStream words(step.domain, step.key, step.original(range),
                     step.frontier.tree(i));
    const auto draw = static_cast<uint32_t>(pick - step.offsets[i]);
    const auto degree = static_cast<uint64_t>(range.degree);
    step.slots[pick] =
        range.begin + static_cast<int64_t>(words.Bounded(draw, degree));
  }
}

// Uniform picks without replacement, for fanouts up to kWarp: a warp for each
// node, a lane for each draw.
__global__ void __launch_bounds__(kMaxBlock) PickDistinctByWarp(HopStep step) {
  __shared__ int64_t drawn[kMaxBlock];
  if (*step.picks == 0) return;
  const unsigned lane = threadIdx.x % kWarp;
  int64_t* mine = drawn + (threadIdx.x - lane);
  const auto fanout = static_cast<unsigned>(step.rule.fanout);
  const unsigned draws = fanout == kWarp ? ~0u : (1u << fanout) - 1;
  const uint64_t size = step.frontier.size();
  for (uint64_t i = ThreadOfGrid() / kWarp; i < size;
       i += ThreadsOfGrid() / kWarp) {
    const DeviceRange range = step.ranges[i];
    int64_t* slots = step.slots + step.offsets[i];
    if (lane >= fanout) continue;
    if (range.degree <= fanout) {
      if (lane < range.degree) slots[lane] = range.begin + lane;
      continue;
    }
    WordStream words(step.domain, step.key, step.original(range),
                     step.frontier.tree(i));
    const int64_t first_j = range.degree - fanout;
    const int64_t j = first_j + lane;
    const auto x =
        static_cast<int64_t>(words.Bounded(lane, static_cast<uint64_t>(j + 1)));
    const unsigned equal =
        __match_any_sync(draws, static_cast<unsigned long long>(x));
    const bool repeated = (equal & ((1u << lane) - 1)) != 0;
    const int64_t parent = x - first_j;
    const bool has_parent = parent >= 0 && parent < lane;
    unsigned took_j = __ballot_sync(draws, repeated);
    while (true) {  // at most as often as the longest chain of parents
      const bool takes =
          repeated || (has_parent && (took_j >> parent & 1) != 0);
      const unsigned next = __ballot_sync(draws, takes);
      if (next == took_j) break;
      took_j = next;
    }
    const int64_t slot = (took_j >> lane & 1) != 0 ? j : x;
    mine[lane] = slot;
    __syncwarp(draws);
    unsigned place = 0;  // slots are distinct
    for (unsigned other = 0; other < fanout; ++other) {
      if (mine[other] < slot) ++place;
    }
    slots[place] = range.begin + slot;
    __syncwarp(draws);  // before the next node's slots
  }
}

// Shared memory of a block, which picks for one node at a time.
struct DistinctDraws {
  static constexpr uint32_t kTable = 2 * kMaxDeviceFanout;
  static constexpr uint32_t kFree = 0xFFFFFFFF;

  int64_t x[kMaxDeviceFanout];
  uint32_t first_with[kTable];  // the first draw with an x; open addressing
  // Of a draw: whether it took j, and the draw on which that depends, or the
  // draw itself. Two versions, since draws are read while others are written.
  bool took_j[2][kMaxDeviceFanout];
  uint16_t parent[2][kMaxDeviceFanout];

  // The place in the table of a draw's x, which is added if it is new.
  __device__ uint32_t Insert(uint32_t draw) {
    auto at = static_cast<uint32_t>(
        static_cast<uint64_t>(x[draw]) * 0x9E3779B97F4A7C15u >> 53);
    while (true) {
      uint32_t seen = RelaxedLoad(&first_with[at]);
      if (seen == kFree) seen = atomicCAS(&first_with[at], kFree, draw);
      if (seen == kFree) return at;
      if (x[seen] == x[draw]) {
        atomicMin(&first_with[at], draw);
        return at;
      }
      at = (at + 1) % kTable;
    }
  }
};

// The draws of one node whose list is longer than the fanout. All threads of
// the block must call it.
__device__ inline void DrawDistinct(const HopStep& step, uint64_t i,
                                    DistinctDraws& draws) {
  const DeviceRange range = step.ranges[i];
  const auto fanout = static_cast<uint32_t>(step.rule.fanout);
  const int64_t first_j = range.degree - fanout;
  WordStream words(step.domain, step.key, step.original(range),
                   step.frontier.tree(i));
  for (uint32_t at = threadIdx.x; at < DistinctDraws::kTable;
       at += blockDim.x) {
    draws.first_with[at] = DistinctDraws::kFree;
  }
  for (uint32_t draw = threadIdx.x; draw < fanout; draw += blockDim.x) {
    draws.x[draw] = static_cast<int64_t>(
        words.Bounded(draw, static_cast<uint64_t>(first_j + draw + 1)));
  }
  __syncthreads();
  for (uint32_t draw = threadIdx.x; draw < fanout; draw += blockDim.x) {
    draws.Insert(draw);
  }
  __syncthreads();
  for (uint32_t draw = threadIdx.x; draw < fanout; draw += blockDim.x) {
    const int64_t parent = draws.x[draw] - first_j;
    draws.took_j[0][draw] =
        RelaxedLoad(&draws.first_with[draws.Insert(draw)]) != draw;
    draws.parent[0][draw] = static_cast<uint16_t>(
        parent >= 0 && parent < draw ? parent : int64_t{draw});
  }
  __syncthreads();
  // After each round a draw knows twice as many of the draws before it in its
  // chain.
  int from = 0;
  for (uint32_t known = 1; known < fanout; known *= 2, from = 1 - from) {
    for (uint32_t draw = threadIdx.x; draw < fanout; draw += blockDim.x) {
      const uint16_t parent = draws.parent[from][draw];
      draws.took_j[1 - from][draw] =
          draws.took_j[from][draw] || draws.took_j[from][parent];
      draws.parent[1 - from][draw] = draws.parent[from][parent];
    }
    __syncthreads();
  }
  for (uint32_t draw = threadIdx.x; draw < fanout; draw += blockDim.x) {
    if (draws.took_j[from][draw]) draws.x[draw] = first_j + draw;
  }
  __syncthreads();
}

// Uniform picks without replacement, for fanouts up to kMaxDeviceFanout: a
// block for each node.
__global__ void __launch_bounds__(kMaxBlock) PickDistinctByBlock(HopStep step) {
  __shared__ DistinctDraws draws;
  if (*step.picks == 0) return;
  const uint64_t size = step.frontier.size();
  for (uint64_t i = blockIdx.x; i < size; i += gridDim.x) {
    const DeviceRange range = step.ranges[i];
    int64_t* slots = step.slots + step.offsets[i];
    const int64_t fanout = step.rule.fanout;
    if (range.degree <= fanout) {
      for (int64_t slot = threadIdx.x; slot < range.degree;
           slot += blockDim.x) {
        slots[slot] = range.begin + slot;
      }
      continue;
    }
    DrawDistinct(step, i, draws);
    for (int64_t draw = threadIdx.x; draw < fanout; draw += blockDim.x) {
      const int64_t slot = draws.x[draw];
      int64_t place = 0;  // slots are distinct
      for (int64_t other = 0; other < fanout; ++other) {
        if (draws.x[other] < slot) ++place;
      }
      slots[place] = range.begin + slot;
    }
    __syncthreads();  // before the next node's draws
  }
}

}  // namespace millrace::cuda
