// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/relabel.h"

#include <bit>

namespace millrace {
namespace {

constexpr size_t kFirstSlots = 4096;

}  // namespace

Relabeler::Relabeler(bool disjoint)
    : disjoint_(disjoint),
      shift_(64 - std::countr_zero(kFirstSlots)),
      slots_(kFirstSlots, Slot{0, 0, 0}) {}

void Relabeler::Grow() {
  std::vector<Slot> old = std::move(slots_);
  slots_.assign(old.size() * 2, Slot{0, 0, 0});
  --shift_;
  for (const Slot& slot : old) {
    if (slot.local_plus_one == 0) continue;
    size_t at = FindSlot(slot.id, slot.tree);
    while (slots_[at].local_plus_one != 0) at = (at + 1) % slots_.size();
    slots_[at] = slot;
  }
}

uint32_t Relabeler::FindOrAppendOne(uint64_t id, uint32_t tree) {
  size_t at = FindSlot(id, tree);
  while (true) {
    Slot& slot = slots_[at];
    if (slot.local_plus_one == 0) {
      slot = {id, tree, count() + 1};
      return Append(id, tree);
    }
    if (slot.id == id && slot.tree == tree) return slot.local_plus_one - 1;
    at = at + 1 == slots_.size() ? 0 : at + 1;
  }
}

std::optional<uint32_t> Relabeler::Find(uint64_t id, uint32_t tree) const {
  size_t at = FindSlot(id, tree);
  while (slots_[at].local_plus_one != 0) {
    const Slot& slot = slots_[at];
    if (slot.id == id && slot.tree == tree) return slot.local_plus_one - 1;
    at = at + 1 == slots_.size() ? 0 : at + 1;
  }
  return std::nullopt;
}

uint32_t Relabeler::Append(uint64_t id, uint32_t tree) {
  const uint32_t local = count();
  ids_.push_back(id);
  if (disjoint_) trees_.push_back(tree);
  return local;
}

void Relabeler::FindOrAppend(std::span<const uint64_t> ids,
                             std::span<const uint32_t> trees,
                             std::vector<uint32_t>& out) {
  constexpr size_t kAhead = 12;
  out.reserve(out.size() + ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (2 * (ids_.size() + 1) > slots_.size()) Grow();
    if (i + kAhead < ids.size()) {
      const uint32_t tree = trees.empty() ? 0 : trees[i + kAhead];
      __builtin_prefetch(&slots_[FindSlot(ids[i + kAhead], tree)], 1);
    }
    out.push_back(FindOrAppendOne(ids[i], trees.empty() ? 0 : trees[i]));
  }
}

}  // namespace millrace
