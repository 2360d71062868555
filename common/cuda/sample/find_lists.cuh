// SPDX-License-Identifier: Apache-2.0
// The first stage of a hop: where the lists are, and how much is picked from
// each.
#pragma once

#include "common/cuda/sample/hop_step.cuh"

namespace millrace::cuda {

// The partition that owns an id; part_count if there is none.
__device__ inline int PartOf(const Lists& lists, uint64_t id) {
  int first = 0, last = lists.part_count;
  while (last - first > 1) {
    const int middle = (first + last) / 2;
    (lists.parts[middle].first_id <= id ? first : last) = middle;
  }
  const bool owned =
      id - lists.parts[first].first_id < lists.parts[first].node_count;
  return owned ? first : lists.part_count;
}

// The list of the i-th node; an empty one if it is damaged.
__device__ inline DeviceRange FindRange(const HopStep& step, uint64_t i) {
  const uint64_t id = step.frontier.id(i);
  const int index = PartOf(step.lists, id);
  if (index == step.lists.part_count) {
    Report(step.trouble, kForeignId);
    return {};
  }
  const PartLists& part = step.lists.parts[index];
  const uint64_t row = id - part.first_id;
  const int64_t begin = part.indptr[row], end = part.indptr[row + 1];
  if (begin < 0 || end < begin || end > part.edge_count) {
    Report(step.trouble, kDamagedIndptr);
    return {};
  }
  int64_t degree = end - begin;
  if (step.frontier.times != nullptr && part.times != nullptr) {
    degree = UpperBound(part.times + begin, degree, step.frontier.time(i));
  }
  return {begin, degree, static_cast<uint32_t>(index),
          static_cast<uint32_t>(row)};
}

// Number of positive weights, or `enough` if there are more. Reads most of a
// list only if it has few.
__device__ inline int64_t CountPositive(const uint64_t* sums, int64_t degree,
                                        int64_t enough) {
  int64_t count = 0;
  uint64_t before = 0;
  for (int64_t slot = 0; slot < degree && count < enough; ++slot) {
    if (sums[slot] != before) ++count;
    before = sums[slot];
  }
  return count;
}

__device__ inline int64_t CountPicks(const HopStep& step,
                                     const DeviceRange& range) {
  const int64_t degree = range.degree;
  if (degree == 0 || step.rule.takes_all()) return degree;
  const int64_t fanout = step.rule.fanout;
  const int64_t fewer = fanout < degree ? fanout : degree;
  switch (step.rule.rule) {
    case DrawRule::kUniform:
      return step.rule.replace ? fanout : fewer;
    case DrawRule::kLabor:
    case DrawRule::kLast:
      return fewer;
    case DrawRule::kWeighted: {
      const uint64_t* sums = step.part(range).weight_sums + range.begin;
      if (sums[degree - 1] == 0) return 0;
      return step.rule.replace ? fanout : CountPositive(sums, degree, fewer);
    }
    case DrawRule::kAmong:
      return 0;  // no kernel picks by it
  }
  return 0;
}

// Fills step.ranges and step.counts for a frontier of at most `bound` nodes.
__global__ void __launch_bounds__(kMaxBlock)
    FindLists(HopStep step, uint64_t bound) {
  const uint64_t size = step.frontier.size();
  for (uint64_t i = ThreadOfGrid(); i <= bound; i += ThreadsOfGrid()) {
    if (i >= size) {
      step.counts[i] = 0;
      continue;
    }
    step.ranges[i] = FindRange(step, i);
    step.counts[i] = static_cast<uint64_t>(CountPicks(step, step.ranges[i]));
  }
}

// Sets *picks to the total of a step's offsets, or to 0 if it is more than
// `room`, would give the relation more than 2^31 - 1 edges, or comes after such
// a total. For one thread.
__global__ void CheckTotal(const uint64_t* total, const uint64_t* edges,
                           uint64_t room, uint64_t* picks, uint32_t* trouble) {
  const bool fits = *total <= room && *total <= kMaxHopRows - *edges &&
                    (*trouble & kTooMany) == 0;
  if (!fits) Report(trouble, kTooMany);
  *picks = fits ? *total : 0;
}

// For one thread.
__global__ void CopyTotal(const uint64_t* total, uint64_t* to) { *to = *total; }

}  // namespace millrace::cuda
