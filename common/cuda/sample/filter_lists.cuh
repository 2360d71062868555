// SPDX-License-Identifier: Apache-2.0
// Between finding lists and picking from them: the entries that a filter keeps
// (docs/determinism.md, sections 3 and 6). Where they are is written to an
// array, and what rules read of them to columns of the same size, from which
// the picks are then made.
//
// The entries of all filtered lists, list after list, are cut into pieces of
// one length, each for a warp, so that hubs are shared evenly. A first pass
// counts what each piece keeps, so that a second one knows where to write it.
#pragma once

#include "common/base/round_up.h"
#include "common/cuda/sample/find_lists.cuh"
#include "common/cuda/sample/hop_step.cuh"

namespace millrace::cuda {

// HopFilter in the device's memory.
struct FilterView {
  const uint64_t* members = nullptr;
  const uint64_t* owners = nullptr;
  const uint64_t* begins = nullptr;
  const ExcludedEntry* entries = nullptr;
  uint64_t owner_count = 0;
  bool timed = false;
};

struct ExcludedSpan {
  const ExcludedEntry* entries = nullptr;
  int64_t size = 0;

  __device__ bool Contains(const ExcludedEntry& entry) const {
    const int64_t after = UpperBound(entries, size, entry);
    return after > 0 && !(entries[after - 1] < entry);
  }
};

// Arrays of a filtered step. Arrays without another size have one element for
// each node of the frontier.
struct FilterArrays {
  ExcludedSpan* excluded = nullptr;
  // Entries of the lists that are filtered, then a 0; and the sums of these,
  // then their total.
  uint64_t* entries = nullptr;
  uint64_t* offsets = nullptr;
  uint64_t pieces = 0;
  uint64_t* piece_counts = nullptr;   // [pieces] of kept entries, then a 0
  uint64_t* piece_offsets = nullptr;  // sums of these, then their total
  // Where the kept entries of filtered lists begin and end in the arrays below.
  uint64_t* begins = nullptr;
  uint64_t* ends = nullptr;
  DeviceRange* ranges = nullptr;       // of the lists that are drawn from
  uint64_t* node_originals = nullptr;  // of nodes whose lists are filtered

  // Of the kept entries of all filtered lists. Null if the rule does not read
  // them.
  int64_t* positions = nullptr;  // in the lists' files
  uint64_t* originals = nullptr;
  uint64_t* weight_sums = nullptr;  // first weights, then their sums
  uint32_t* nodes = nullptr;        // of the frontier; for the sums
};

__device__ inline ExcludedSpan FindExcluded(const FilterView& filter,
                                            uint64_t id) {
  const int64_t after =
      UpperBound(filter.owners, static_cast<int64_t>(filter.owner_count), id);
  if (after == 0 || filter.owners[after - 1] != id) return {};
  const uint64_t begin = filter.begins[after - 1];
  return {filter.entries + begin,
          static_cast<int64_t>(filter.begins[after] - begin)};
}

// Finds out which lists of a frontier of at most `bound` nodes are filtered,
// and how long they are. In arrays.ranges these lists are still empty, and
// belong to a further partition.
__global__ void __launch_bounds__(kMaxBlock)
    FindFilteredLists(HopStep step, FilterView filter, FilterArrays arrays,
                      uint64_t bound) {
  const uint64_t size = step.frontier.size();
  for (uint64_t i = ThreadOfGrid(); i <= bound; i += ThreadsOfGrid()) {
    arrays.entries[i] = 0;
    if (i >= size) continue;
    const DeviceRange range = step.ranges[i];
    const ExcludedSpan excluded = FindExcluded(filter, step.frontier.id(i));
    arrays.excluded[i] = excluded;
    arrays.ranges[i] = range;
    if (filter.members == nullptr && excluded.size == 0) continue;
    arrays.ranges[i] = {0, 0, static_cast<uint32_t>(step.lists.part_count),
                        static_cast<uint32_t>(i)};
    if (range.degree == 0) continue;
    arrays.entries[i] = static_cast<uint64_t>(range.degree);
    arrays.node_originals[i] = step.original(range);
  }
}

// An entry of a filtered list.
struct FilteredEntry {
  uint64_t i = 0;        // the frontier node
  int64_t position = 0;  // in the lists' file
  bool kept = false;
};

// Whether an entry is kept. What is no node is, so that the batch is given up
// if it is picked.
__device__ inline bool IsKept(const HopStep& step, const FilterView& filter,
                              const ExcludedSpan& excluded,
                              const PartLists& part, int64_t position) {
  const uint64_t neighbor = part.indices[position];
  if (filter.members != nullptr && neighbor < step.lists.neighbor_limit &&
      (filter.members[neighbor / 64] >> neighbor % 64 & 1) == 0) {
    return false;
  }
  if (excluded.size == 0) return true;
  return !excluded.Contains(
      {neighbor, filter.timed ? part.times[position] : 0});
}

__device__ inline FilteredEntry EntryAt(const HopStep& step,
                                        const FilterView& filter,
                                        const FilterArrays& arrays,
                                        uint64_t at) {
  FilteredEntry entry;
  entry.i =
      static_cast<uint64_t>(UpperBound(
          arrays.offsets, static_cast<int64_t>(step.frontier.size()), at)) -
      1;
  const DeviceRange& range = step.ranges[entry.i];
  entry.position =
      range.begin + static_cast<int64_t>(at - arrays.offsets[entry.i]);
  entry.kept = IsKept(step, filter, arrays.excluded[entry.i], step.part(range),
                      entry.position);
  return entry;
}

// A range of the entries of all filtered lists.
struct FilterPiece {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Piece number `piece` of `pieces`; an empty one after the last.
__device__ inline FilterPiece PieceAt(uint64_t piece, uint64_t pieces,
                                      uint64_t entries) {
  const uint64_t least = (entries + pieces - 1) / pieces;
  const uint64_t length = RoundUp(least, kWarp);
  const uint64_t begin = piece * length, end = begin + length;
  return {begin < entries ? begin : entries, end < entries ? end : entries};
}

// Counts the entries that are kept. A warp for each piece.
__global__ void __launch_bounds__(kMaxBlock)
    CountKept(HopStep step, FilterView filter, FilterArrays arrays) {
  const unsigned lane = threadIdx.x % kWarp;
  const uint64_t entries = arrays.offsets[step.frontier.size()];
  for (uint64_t p = ThreadOfGrid() / kWarp; p <= arrays.pieces;
       p += ThreadsOfGrid() / kWarp) {
    uint64_t kept = 0;
    const FilterPiece piece = PieceAt(p, arrays.pieces, entries);
    for (uint64_t base = piece.begin; base < piece.end; base += kWarp) {
      const uint64_t at = base + lane;
      const bool keep =
          at < piece.end && EntryAt(step, filter, arrays, at).kept;
      kept += static_cast<uint64_t>(__popc(__ballot_sync(~0u, keep)));
    }
    if (lane == 0) arrays.piece_counts[p] = kept;
  }
}

// Writes what the rule reads of a kept entry.
__device__ inline void WriteEntry(const HopStep& step,
                                  const FilterArrays& arrays,
                                  const FilteredEntry& entry, uint64_t to) {
  const DeviceRange& range = step.ranges[entry.i];
  const PartLists& part = step.part(range);
  arrays.positions[to] = entry.position;
  if (arrays.originals != nullptr) {
    arrays.originals[to] = part.originals[entry.position];
  }
  if (arrays.weight_sums != nullptr) {
    const uint64_t before = entry.position == range.begin
                                ? 0
                                : part.weight_sums[entry.position - 1];
    arrays.weight_sums[to] = part.weight_sums[entry.position] - before;
    arrays.nodes[to] = static_cast<uint32_t>(entry.i);
  }
}

// Writes the entries that are kept, and where those of each list are. A warp
// for each piece.
__global__ void __launch_bounds__(kMaxBlock)
    WriteKept(HopStep step, FilterView filter, FilterArrays arrays) {
  const unsigned lane = threadIdx.x % kWarp;
  const unsigned lanes_before = (1u << lane) - 1;
  const uint64_t entries = arrays.offsets[step.frontier.size()];
  for (uint64_t p = ThreadOfGrid() / kWarp; p < arrays.pieces;
       p += ThreadsOfGrid() / kWarp) {
    uint64_t kept = arrays.piece_offsets[p];
    const FilterPiece piece = PieceAt(p, arrays.pieces, entries);
    for (uint64_t base = piece.begin; base < piece.end; base += kWarp) {
      const uint64_t at = base + lane;
      const bool valid = at < piece.end;
      FilteredEntry entry;
      if (valid) entry = EntryAt(step, filter, arrays, at);
      const unsigned lanes = __ballot_sync(~0u, entry.kept);
      const uint64_t to =
          kept + static_cast<uint64_t>(__popc(lanes & lanes_before));
      kept += static_cast<uint64_t>(__popc(lanes));
      if (!valid) continue;
      if (entry.kept) WriteEntry(step, arrays, entry, to);
      if (at == arrays.offsets[entry.i]) arrays.begins[entry.i] = to;
      if (at + 1 == arrays.offsets[entry.i + 1]) {
        arrays.ends[entry.i] = to + (entry.kept ? 1 : 0);
      }
    }
  }
}

// Turns weights of kept entries into their sums in each list. `running` holds
// the sums of all weights before an entry, modulo 2^64. A thread for each
// entry.
__global__ void __launch_bounds__(kMaxBlock)
    SumKeptWeights(FilterArrays arrays, const uint64_t* running,
                   uint64_t count) {
  for (uint64_t at = ThreadOfGrid(); at < count; at += ThreadsOfGrid()) {
    const uint64_t before = running[arrays.begins[arrays.nodes[at]]];
    arrays.weight_sums[at] += running[at] - before;
  }
}

// Fills the ranges of the lists that are filtered, and the counts of a step
// that draws from these ranges, for a frontier of at most `bound` nodes.
__global__ void __launch_bounds__(kMaxBlock)
    FindKeptLists(HopStep step, FilterArrays arrays, uint64_t bound) {
  const uint64_t size = step.frontier.size();
  for (uint64_t i = ThreadOfGrid(); i <= bound; i += ThreadsOfGrid()) {
    step.counts[i] = 0;
    if (i >= size) continue;
    DeviceRange& range = step.ranges[i];
    if (arrays.entries[i] > 0) {
      range.begin = static_cast<int64_t>(arrays.begins[i]);
      range.degree = static_cast<int64_t>(arrays.ends[i] - arrays.begins[i]);
    }
    step.counts[i] = static_cast<uint64_t>(CountPicks(step, range));
  }
}

// Replaces picked entries of filtered lists by their positions in the lists'
// files. `filtered` is the number that the lists have instead of a partition's.
// A thread for each pick.
__global__ void __launch_bounds__(kMaxBlock)
    RestorePositions(HopStep step, const int64_t* positions,
                     uint32_t filtered) {
  const uint64_t picks = *step.picks;
  for (uint64_t pick = ThreadOfGrid(); pick < picks; pick += ThreadsOfGrid()) {
    if (step.ranges[step.owner(pick)].part != filtered) continue;
    step.slots[pick] = positions[step.slots[pick]];
  }
}

}  // namespace millrace::cuda
