// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "common/cuda/sample/device_array.cuh"
#include "common/cuda/sample/numbering.cuh"

namespace millrace::cuda {

// Arrays that numberings share; they keep nothing.
template <typename Queue>
struct NumberingScratch {
  explicit NumberingScratch(Queue& queue)
      : places(queue), is_first(queue), before(queue) {}

  bool Reserve(uint64_t nodes) {
    return places.Reserve(nodes + 1) && is_first.Reserve(nodes + 1) &&
           before.Reserve(nodes + 1);
  }

  DeviceArray<Queue, uint64_t> places, is_first, before;
};

// Nodes to number: at most `bound`.
struct NewNodes {
  const uint64_t* ids = nullptr;
  const uint32_t* trees = nullptr;
  const uint64_t* count = nullptr;
  uint64_t bound = 0;
};

// The nodes of one type in a batch, numbered on the device as Relabeler does on
// the CPU. For the queue see HopSampler.
template <typename Queue>
class NodeNumbers {
 public:
  explicit NodeNumbers(Queue& queue)
      : queue_(&queue), ids_(queue), trees_(queue), table_(queue) {}

  // Forgets all nodes. `count` is where their number is kept, which must be 0.
  void Start(bool disjoint, uint64_t* count) {
    disjoint_ = disjoint;
    count_ = count;
    places_ = 0;
  }

  // Makes room for `nodes`; there are `known` now. False if there is not enough
  // memory.
  bool Reserve(uint64_t nodes, uint64_t known) {
    if (!ids_.Reserve(nodes, known)) return false;
    if (disjoint_ && !trees_.Reserve(nodes, known)) return false;
    room_ = nodes;
    const uint64_t places = std::bit_ceil(2 * nodes + 2);
    if (places <= places_) return true;
    if (!table_.Reserve(places)) return false;
    places_ = places;
    queue_->LaunchEach(ClearTable, places, table());
    if (known > 0) {
      queue_->LaunchEach(InsertKnown, known, table(), View({}));
    }
    return true;
  }

  // Writes the local ids of `nodes` to locals[*numbered ...], and adds their
  // number to *numbered. `scratch` must have room for nodes.bound.
  void Number(const NewNodes& nodes, NumberingScratch<Queue>& scratch,
              uint64_t* numbered, uint32_t* locals, uint32_t* trouble) {
    if (nodes.bound == 0) return;
    const NumberedNodes view = View(nodes);
    uint64_t* places = scratch.places.data();
    uint64_t* is_first = scratch.is_first.data();
    uint64_t* before = scratch.before.data();
    queue_->LaunchEach(InsertNew, nodes.bound, table(), view, places);
    queue_->LaunchEach(FlagFirst, nodes.bound + 1, table(), view, places,
                       nodes.bound, is_first);
    queue_->ExclusiveSum(is_first, before, nodes.bound + 1);
    queue_->LaunchEach(WriteLocals, nodes.bound, table(), view, places, before,
                       numbered, locals);
    queue_->LaunchEach(AppendFirst, nodes.bound, table(), view, places, before,
                       room_, trouble);
    queue_->LaunchEach(CountNumbered, 1, view, before, room_, numbered);
  }

  // By local id.
  const uint64_t* ids() const { return ids_.data(); }
  const uint32_t* trees() const {  // null unless disjoint
    return disjoint_ ? trees_.data() : nullptr;
  }

 private:
  PositionTable table() const {
    return {table_.data(), places_ - 1, 64 - std::countr_zero(places_)};
  }
  NumberedNodes View(const NewNodes& nodes) const {
    return {ids_.data(), disjoint_ ? trees_.data() : nullptr,
            count_,      nodes.ids,
            nodes.trees, nodes.count};
  }

  Queue* queue_;
  bool disjoint_ = false;
  uint64_t* count_ = nullptr;
  uint64_t room_ = 0;
  uint64_t places_ = 0;  // of the table that are in use
  DeviceArray<Queue, uint64_t> ids_;
  DeviceArray<Queue, uint32_t> trees_;
  DeviceArray<Queue, uint32_t> table_;
};

}  // namespace millrace::cuda
