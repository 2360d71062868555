// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/sample/draw/draw.h"
#include "common/sample/draw/list_view.h"
#include "common/sample/draw/pick_slots.h"
#include "common/sample/draw/word_stream.h"
#include "common/sample/draw_rule.h"

namespace millrace {

// Picks slots from the lists of a frontier by the rule of its hop. Id is the
// type of the neighbours' ids.
// Not thread-safe. `view` and `frontier` must outlive it.
template <typename Id>
class SlotPicker {
 public:
  SlotPicker(const ListView& view, const Frontier& frontier)
      : view_(view),
        frontier_(frontier),
        rule_(InfoOf(view.context.rule)),
        domain_(MakeDomain(view.context, frontier.relation)),
        key_(domain_.Key()),
        indices_(view.lists.indices.As<Id>()),
        sums_(view.lists.weight_sum.As<uint64_t>()),
        // In a dataset, ids are original ids.
        originals_(view.lists.neighbor_original_id.present()
                       ? view.lists.neighbor_original_id.As<Id>()
                       : indices_),
        narrow_nodes_(view.nodes.original_id.dtype() == DType::kUint32),
        poller_(frontier.poller != nullptr ? *frontier.poller
                                           : never_cancelled_) {}

  // Loads the first cache lines of a list that the rule will soon read as a
  // whole; the CPU loads the others by itself.
  void Prefetch(ListRange list) const {
    if (!rule_.prefetches) return;
    if (rule_.reads_neighbors) PrefetchColumn(indices_, list);
    if (rule_.reads_weight_sums) PrefetchColumn(sums_, list);
    if (rule_.reads_original_ids) PrefetchColumn(originals_, list);
  }

  // Appends the positions that the i-th node of the frontier picks from `list`,
  // which is its list or the admissible part of it. Returns the errors of the
  // frontier's poller.
  absl::Status Pick(size_t i, ListRange list, std::vector<int64_t>& slots) {
    std::span<const ExcludedEdges::Entry> excluded;
    if (frontier_.excluded != nullptr) {
      const auto found = frontier_.excluded->by_node.find(frontier_.ids[i]);
      if (found != frontier_.excluded->by_node.end()) excluded = found->second;
    }
    if (view_.members != nullptr || !excluded.empty()) {
      return PickFiltered(i, list, excluded, slots);
    }
    PickFrom(i, list, {indices_, sums_, originals_}, slots);
    return absl::OkStatus();
  }

 private:
  // The columns that rules read, indexed by the positions of a ListRange.
  struct Columns {
    std::span<const Id> indices;
    std::span<const uint64_t> sums;
    std::span<const Id> originals;
  };

  static DrawDomain MakeDomain(const DrawContext& context,
                               RelationIndex relation) {
    const Purpose hop = context.walk ? Purpose::kWalk : Purpose::kNeighbor;
    return {.job_seed = context.job_seed,
            .epoch = context.epoch,
            .batch = context.batch,
            .purpose = InfoOf(context.rule).own_purpose.value_or(hop),
            .hop = context.hop,
            .relation = relation};
  }

  template <typename T>
  static void PrefetchColumn(std::span<const T> column, ListRange list) {
    constexpr int64_t kLine = 64 / sizeof(T);
    for (int64_t i = 0; i < std::min(list.degree, 8 * kLine); i += kLine) {
      __builtin_prefetch(column.data() + list.begin + i);
    }
  }

  WordStream MakeStream(size_t i) const {
    const uint64_t row = frontier_.ids[i] - view_.first_id;
    const Array& originals = view_.nodes.original_id;
    const uint64_t node = narrow_nodes_ ? originals.As<uint32_t>()[row]
                                        : originals.As<uint64_t>()[row];
    return WordStream(domain_, key_, node, frontier_.tree(i));
  }

  void PickFrom(size_t i, ListRange list, const Columns& columns,
                std::vector<int64_t>& slots) {
    const int32_t fanout = frontier_.fanout;
    const bool replace = view_.context.replace;
    switch (view_.context.rule) {
      case DrawRule::kUniform: {
        WordStream words = MakeStream(i);
        return PickUniform(words, list, fanout, replace, slots);
      }
      case DrawRule::kWeighted: {
        WordStream words = MakeStream(i);
        return PickWeighted(words, list, columns.sums, fanout, replace, slots);
      }
      case DrawRule::kLabor:
        return PickLabor(key_, frontier_.tree(i), list, columns.originals,
                         fanout, ranks_, slots);
      case DrawRule::kLast:
        return PickLast(list, fanout, slots);
      case DrawRule::kAmong:
        for (int64_t at = list.begin; at < list.begin + list.degree; ++at) {
          if (frontier_.among->contains(columns.indices[at])) {
            slots.push_back(at);
          }
        }
        return;
    }
  }

  // Picks from the list without its excluded entries and those whose neighbour
  // is not a member. Copies what the rule reads of the other entries.
  absl::Status PickFiltered(size_t i, ListRange list,
                            std::span<const ExcludedEdges::Entry> excluded,
                            std::vector<int64_t>& slots) {
    MILLRACE_RETURN_IF_ERROR(FilterList(list, excluded));
    CopyKept(list);
    const size_t first = slots.size();
    const auto degree = static_cast<int64_t>(kept_.size());
    PickFrom(i, {0, degree}, {kept_indices_, kept_sums_, kept_originals_},
             slots);
    for (size_t at = first; at < slots.size(); ++at) {
      slots[at] = kept_[static_cast<size_t>(slots[at])];
    }
    return absl::OkStatus();
  }

  absl::Status FilterList(ListRange list,
                          std::span<const ExcludedEdges::Entry> excluded) {
    const bool timed = !excluded.empty() && frontier_.excluded->timed;
    const std::span<const int64_t> times = view_.lists.time.As<int64_t>();
    kept_.clear();
    const auto keep = [&](int64_t at) {
      if (view_.members != nullptr && !view_.members->contains(indices_[at])) {
        return;
      }
      if (!ExcludedEdges::Contains(excluded,
                                   {indices_[at], timed ? times[at] : 0})) {
        kept_.push_back(at);
      }
    };
    return poller_.InPieces(list.degree, [&](size_t begin, size_t end) {
      for (size_t slot = begin; slot < end; ++slot) {
        keep(list.begin + static_cast<int64_t>(slot));
      }
    });
  }

  void CopyKept(ListRange list) {
    if (rule_.reads_neighbors) CopyKept(indices_, kept_indices_);
    if (rule_.reads_weight_sums) CopyKeptSums(list.begin);
    if (rule_.reads_original_ids) CopyKept(originals_, kept_originals_);
  }

  void CopyKept(std::span<const Id> column, std::vector<Id>& kept) const {
    kept.clear();
    for (const int64_t at : kept_) kept.push_back(column[at]);
  }

  void CopyKeptSums(int64_t begin) {
    kept_sums_.clear();
    uint64_t total = 0;
    for (const int64_t at : kept_) {
      total += sums_[at] - (at == begin ? 0 : sums_[at - 1]);
      kept_sums_.push_back(total);
    }
  }

  const ListView& view_;
  const Frontier& frontier_;
  const DrawRuleInfo& rule_;
  const DrawDomain domain_;
  const PhiloxKey key_;
  const std::span<const Id> indices_;
  const std::span<const uint64_t> sums_;
  const std::span<const Id> originals_;
  const bool narrow_nodes_;
  CancelPoller never_cancelled_;
  CancelPoller& poller_;             // the frontier's, or never_cancelled_
  std::vector<NumberedNode> ranks_;  // scratch
  // The entries of the current list that PickFiltered() keeps.
  std::vector<int64_t> kept_;  // positions
  std::vector<Id> kept_indices_;
  std::vector<uint64_t> kept_sums_;
  std::vector<Id> kept_originals_;
};

}  // namespace millrace
