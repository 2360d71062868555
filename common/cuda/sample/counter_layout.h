// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::cuda {

// Where HopSampler's counters of a batch are in their array: the trouble bits;
// for each type its nodes; for each relation its edges, and in the current hop
// the total of its offsets and its picks; the seeds numbered; for each list of
// seeds its size; for each type the first local id of each hop's nodes, of
// which the seeds' is 0; and for each relation its edges before each hop and
// after the last, of which the first is 0.
class CounterLayout {
 public:
  CounterLayout() = default;
  CounterLayout(size_t types, size_t relations, size_t seed_lists, int hops)
      : types_(types),
        relations_(relations),
        seed_lists_(seed_lists),
        stride_(static_cast<uint64_t>(hops) + 2) {}

  uint64_t size() const { return ListEnd(relations_, 0); }
  // From a type's offset of a hop to the next type's.
  uint64_t stride() const { return stride_; }

  uint64_t Nodes(uint64_t type) const { return 1 + type; }
  uint64_t Edges(uint64_t relation) const { return 1 + types_ + 3 * relation; }
  uint64_t Total(uint64_t relation) const { return Edges(relation) + 1; }
  uint64_t Picks(uint64_t relation) const { return Edges(relation) + 2; }
  uint64_t Seeds() const { return Edges(relations_); }
  uint64_t SeedCount(uint64_t list) const { return Seeds() + 1 + list; }
  uint64_t Offset(uint64_t type, int hop) const {
    return SeedCount(seed_lists_) + type * stride_ + hop;
  }
  // From a relation's edges before a hop to the next relation's.
  uint64_t end_stride() const { return stride_ - 1; }
  uint64_t ListEnd(uint64_t relation, int hop) const {
    return Offset(types_, 0) + relation * end_stride() + hop;
  }

 private:
  uint64_t types_ = 0, relations_ = 0, seed_lists_ = 0, stride_ = 2;
};

}  // namespace millrace::cuda
