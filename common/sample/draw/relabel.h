// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

// Gives local ids to nodes of one type by first appearance: an open-addressing
// table of 16-byte slots, so that a probe touches one cache line.
// Single-threaded.
class Relabeler {
 public:
  // `disjoint`: nodes are told apart by (tree, id), else by id.
  explicit Relabeler(bool disjoint);

  // The local id of each node, in order; new nodes are appended. `trees` is
  // empty unless disjoint.
  void FindOrAppend(std::span<const uint64_t> ids,
                    std::span<const uint32_t> trees,
                    std::vector<uint32_t>& out);

  // The local id of a node; `tree` is 0 unless disjoint.
  std::optional<uint32_t> Find(uint64_t id, uint32_t tree) const;

  uint32_t count() const { return static_cast<uint32_t>(ids_.size()); }
  const std::vector<uint64_t>& ids() const { return ids_; }
  const std::vector<uint32_t>& trees() const { return trees_; }

  // Hand over the nodes; the table is empty afterwards.
  std::vector<uint64_t> TakeIds() { return std::move(ids_); }
  std::vector<uint32_t> TakeTrees() { return std::move(trees_); }

 private:
  struct Slot {
    uint64_t id;
    uint32_t tree;
    uint32_t local_plus_one;  // 0: free
  };
  size_t SlotOf(uint64_t id, uint32_t tree) const {
    const uint64_t mixed =
        (id ^ (uint64_t{tree} << 32 | tree)) * 0x9e3779b97f4a7c15u;
    return mixed >> shift_;
  }
  uint32_t FindOrAppendOne(uint64_t id, uint32_t tree);
  uint32_t Append(uint64_t id, uint32_t tree);
  void Grow();

  const bool disjoint_;
  int shift_;  // 64 - log2(slots)
  std::vector<Slot> slots_;
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> trees_;  // disjoint only
};

}  // namespace millrace
