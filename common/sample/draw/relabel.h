// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace millrace {

// Gives local ids to the nodes of one type in order of first appearance. Uses
// an open-addressing table of 16-byte slots, so that a probe touches one cache
// line. Not thread-safe.
class Relabeler {
 public:
  // If `disjoint`, nodes are told apart by (tree, id), otherwise by id.
  explicit Relabeler(bool disjoint);

  // Appends the local id of each node to `out`, in order, after giving one to
  // new nodes. `trees` is empty unless disjoint.
  void FindOrAppend(std::span<const uint64_t> ids,
                    std::span<const uint32_t> trees,
                    std::vector<uint32_t>& out);

  // The local id of a node, or nullopt if it has none; `tree` is 0 unless
  // disjoint.
  std::optional<uint32_t> Find(uint64_t id, uint32_t tree) const;

  uint32_t count() const { return static_cast<uint32_t>(ids_.size()); }
  const std::vector<uint64_t>& ids() const { return ids_; }
  const std::vector<uint32_t>& trees() const { return trees_; }

  // Hand over the nodes. The object must not be used afterwards.
  std::vector<uint64_t> TakeIds() { return std::move(ids_); }
  std::vector<uint32_t> TakeTrees() { return std::move(trees_); }

 private:
  struct Slot {
    uint64_t id;
    uint32_t tree;
    uint32_t local_plus_one;  // 0 if the slot is free
  };
  size_t FindSlot(uint64_t id, uint32_t tree) const {
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
  std::vector<uint32_t> trees_;  // empty unless disjoint
};

}  // namespace millrace
