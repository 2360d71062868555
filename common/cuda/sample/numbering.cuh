// SPDX-License-Identifier: Apache-2.0
// Local ids by first appearance (docs/determinism.md, section 5).
//
// The nodes of a type that are known, in local order, and then the nodes to
// number stand at the positions 0, 1, ... An open-addressing table holds for
// each different node its smallest position, whatever order threads insert in.
// A node that first appears at a position p is new if p is not below the number
// of known nodes; its local id is that number plus the new nodes before p.
#pragma once

#include <cstdint>

#include "common/cuda/sample/kernel.cuh"

namespace millrace::cuda {

// Nodes by position: (id, tree), or only id if there are no trees.
struct NumberedNodes {
  uint64_t* ids = nullptr;    // of known nodes, by local id
  uint32_t* trees = nullptr;  // null unless disjoint
  uint64_t* count = nullptr;  // of known nodes
  const uint64_t* new_ids = nullptr;
  const uint32_t* new_trees = nullptr;
  const uint64_t* new_count = nullptr;

  __device__ uint64_t id(uint64_t position, uint64_t known) const {
    return position < known ? ids[position] : new_ids[position - known];
  }
  __device__ uint32_t tree(uint64_t position, uint64_t known) const {
    if (trees == nullptr) return 0;
    return position < known ? trees[position] : new_trees[position - known];
  }
};

struct PositionTable {
  static constexpr uint32_t kFree = 0xFFFFFFFF;

  uint32_t* first = nullptr;
  uint64_t mask = 0;  // places - 1; places are a power of two
  int shift = 0;      // 64 - log2(places)
};

__device__ inline uint64_t InsertPosition(const PositionTable& table,
                                          const NumberedNodes& nodes,
                                          uint64_t known, uint32_t position) {
  const uint64_t id = nodes.id(position, known);
  const uint32_t tree = nodes.tree(position, known);
  uint64_t at = ((id ^ (uint64_t{tree} << 32 | tree)) * 0x9E3779B97F4A7C15u) >>
                table.shift;
  while (true) {
    uint32_t seen = RelaxedLoad(&table.first[at]);
    if (seen == PositionTable::kFree) {
      seen = atomicCAS(&table.first[at], PositionTable::kFree, position);
    }
    if (seen == PositionTable::kFree) return at;
    if (nodes.id(seen, known) == id && nodes.tree(seen, known) == tree) {
      if (position < seen) atomicMin(&table.first[at], position);
      return at;
    }
    at = (at + 1) & table.mask;
  }
}

__global__ void __launch_bounds__(kMaxBlock) ClearTable(PositionTable table) {
  for (uint64_t at = ThreadOfGrid(); at <= table.mask; at += ThreadsOfGrid()) {
    table.first[at] = PositionTable::kFree;
  }
}

// Inserts the known nodes into an empty table.
__global__ void __launch_bounds__(kMaxBlock)
    InsertKnown(PositionTable table, NumberedNodes nodes) {
  const uint64_t known = *nodes.count;
  for (uint64_t i = ThreadOfGrid(); i < known; i += ThreadsOfGrid()) {
    InsertPosition(table, nodes, known, static_cast<uint32_t>(i));
  }
}

// Inserts the new nodes into the table, which holds the known ones and has room
// for twice as many as there can be; places[i] becomes the place of node i.
__global__ void __launch_bounds__(kMaxBlock)
    InsertNew(PositionTable table, NumberedNodes nodes, uint64_t* places) {
  const uint64_t known = *nodes.count, count = *nodes.new_count;
  for (uint64_t i = ThreadOfGrid(); i < count; i += ThreadsOfGrid()) {
    places[i] =
        InsertPosition(table, nodes, known, static_cast<uint32_t>(known + i));
  }
}

// Sets is_first[i] to whether node i appears there first, for all i < bound.
__global__ void __launch_bounds__(kMaxBlock)
    FlagFirst(PositionTable table, NumberedNodes nodes, const uint64_t* places,
              uint64_t bound, uint64_t* is_first) {
  const uint64_t known = *nodes.count, count = *nodes.new_count;
  for (uint64_t i = ThreadOfGrid(); i <= bound; i += ThreadsOfGrid()) {
    is_first[i] = i < count && table.first[places[i]] == known + i ? 1 : 0;
  }
}

// `before` holds the sums of is_first. Writes the local ids of the new nodes to
// locals[*start + i].
__global__ void __launch_bounds__(kMaxBlock)
    WriteLocals(PositionTable table, NumberedNodes nodes,
                const uint64_t* places, const uint64_t* before,
                const uint64_t* start, uint32_t* locals) {
  const uint64_t known = *nodes.count, count = *nodes.new_count;
  for (uint64_t i = ThreadOfGrid(); i < count; i += ThreadsOfGrid()) {
    const uint64_t first = table.first[places[i]];
    locals[*start + i] = static_cast<uint32_t>(
        first < known ? first : known + before[first - known]);
  }
}

// Makes known the nodes that appear first: their position in the table becomes
// their local id. `room` is the size of nodes.ids.
__global__ void __launch_bounds__(kMaxBlock)
    AppendFirst(PositionTable table, NumberedNodes nodes,
                const uint64_t* places, const uint64_t* before, uint64_t room,
                uint32_t* trouble) {
  const uint64_t known = *nodes.count, count = *nodes.new_count;
  for (uint64_t i = ThreadOfGrid(); i < count; i += ThreadsOfGrid()) {
    if (before[i + 1] == before[i]) continue;
    const uint64_t local = known + before[i];
    if (local >= room) {
      Report(trouble, kTooMany);
      continue;
    }
    table.first[places[i]] = static_cast<uint32_t>(local);
    nodes.ids[local] = nodes.new_ids[i];
    if (nodes.trees != nullptr) nodes.trees[local] = nodes.new_trees[i];
  }
}

// Counts what has been numbered: nodes of the type, and edges of the relation
// (or seeds). For one thread.
__global__ void CountNumbered(NumberedNodes nodes, const uint64_t* before,
                              uint64_t room, uint64_t* numbered) {
  const uint64_t count = *nodes.count + before[*nodes.new_count];
  *nodes.count = count < room ? count : room;
  *numbered += *nodes.new_count;
}

// Copies every `from_stride`th counter to every `to_stride`th one: for one
// thread each.
__global__ void __launch_bounds__(kMaxBlock)
    CopyCounters(const uint64_t* from, uint64_t from_stride, uint64_t count,
                 uint64_t* to, uint64_t to_stride) {
  for (uint64_t i = ThreadOfGrid(); i < count; i += ThreadsOfGrid()) {
    to[i * to_stride] = from[i * from_stride];
  }
}

}  // namespace millrace::cuda
