// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/biased_steps.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/graph/weights.h"
#include "common/sample/draw/draw.h"
#include "common/sample/draw/word_stream.h"

namespace millrace {

BiasedSteps::BiasedSteps(const JobSpec& spec, RelationIndex relation,
                         NeighborSource& source, CancelPoller& poller)
    : relation_(relation), source_(source), poller_(poller) {
  const std::vector<uint64_t> sums =
      WeightSums(std::vector<float>{static_cast<float>(1 / spec.walk_p), 1,
                                    static_cast<float>(1 / spec.walk_q)});
  back_weight_ = sums[0];
  near_weight_ = sums[1] - sums[0];
  far_weight_ = sums[2] - sums[1];
}

absl::Status BiasedSteps::Fetch(const DrawContext& context,
                                std::vector<uint64_t> ids) {
  source_.ReleasePicks(context, lists_before_.picks().neighbors.size());
  lists_before_ = std::move(lists_);
  const Frontier frontier = {
      .relation = relation_, .fanout = kAllNeighbors, .ids = ids};
  Picks picks;
  MILLRACE_RETURN_IF_ERROR(
      source_.Expand(context, std::span(&frontier, 1), std::span(&picks, 1)));
  lists_ = WholeLists(std::move(ids), std::move(picks));
  return poller_.Count(lists_.picks().neighbors.size());
}

// Looks up each entry of the shorter list in the longer one.
absl::Status BiasedSteps::FindSpecialSlots(ListRange list, uint64_t before) {
  const auto add = [&](uint32_t slot) {
    const bool back = lists_.NeighborAt(list, slot) == before;
    special_.push_back({slot, back ? back_weight_ : near_weight_});
  };
  const ListRange list_before = lists_before_.Of(before);
  if (list.degree <= list_before.degree) {
    for (uint32_t slot = 0; slot < list.degree; ++slot) {
      const uint64_t node = lists_.NeighborAt(list, slot);
      if (node == before || !lists_before_.SlotsOf(list_before, node).empty()) {
        add(slot);
      }
    }
    return poller_.Count(list.degree);
  }
  for (const uint32_t slot : lists_.SlotsOf(list, before)) add(slot);
  uint64_t last = before;
  for (const uint32_t entry : lists_before_.ByNeighbor(list_before)) {
    const uint64_t node = lists_before_.NeighborAt(list_before, entry);
    // Equal entries are adjacent.
    if (node == before || node == last) continue;
    last = node;
    for (const uint32_t slot : lists_.SlotsOf(list, node)) add(slot);
  }
  std::sort(special_.begin(), special_.end());
  return poller_.Count(list_before.degree + special_.size());
}

// The slot s for which x lies in [W[0] + .. + W[s - 1], W[0] + .. + W[s]).
int64_t BiasedSteps::SlotAt(uint64_t x, int64_t degree) const {
  int64_t slot = 0;
  for (const SpecialSlot& special : special_) {
    const uint64_t between = (special.slot - slot) * far_weight_;
    if (x < between) break;
    x -= between;
    slot = special.slot;
    if (x < special.weight) return slot;
    x -= special.weight;
    ++slot;
  }
  slot += static_cast<int64_t>(x / far_weight_);
  MILLRACE_CHECK(slot < degree);
  return slot;
}

absl::Status BiasedSteps::Draw(DrawContext context,
                               std::span<const uint32_t> walkers,
                               std::span<const uint64_t> at, Picks& picks) {
  std::vector<uint64_t> ids(at.begin(), at.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  context.replace = false;  // all slots, each once
  MILLRACE_RETURN_IF_ERROR(Fetch(context, std::move(ids)));
  const DrawDomain domain = {.job_seed = context.job_seed,
                             .epoch = context.epoch,
                             .batch = context.batch,
                             .purpose = Purpose::kWalk,
                             .hop = context.hop,
                             .relation = relation_};
  const PhiloxKey key = domain.Key();
  for (size_t i = 0; i < walkers.size(); ++i) {
    const uint32_t walker = walkers[i];
    if (first_) before_.resize(std::max<size_t>(before_.size(), walker + 1));
    const ListRange list = lists_.Of(at[i]);
    special_.clear();
    if (!first_) {
      MILLRACE_RETURN_IF_ERROR(FindSpecialSlots(list, before_[walker]));
    }
    before_[walker] = at[i];
    if (list.degree == 0) {
      picks.counts.push_back(0);
      continue;
    }
    uint64_t total = (list.degree - special_.size()) * far_weight_;
    for (const SpecialSlot& special : special_) total += special.weight;
    // The stream is keyed by the walker's number instead of a node.
    WordStream words(domain, key, walker, /*tree=*/0);
    const int64_t slot = SlotAt(words.Wide(0, total), list.degree);
    picks.AppendNode(lists_.picks(), list.begin + slot, 1);
  }
  first_ = false;
  return absl::OkStatus();
}

}  // namespace millrace
