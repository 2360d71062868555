// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/walks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/weights.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/draw/draw.h"
#include "common/sample/draw/pick_slots.h"
#include "common/sample/draw/word_stream.h"

namespace millrace {
namespace {

// Memory that a walker takes besides its path and its draws: its number, its
// place, and its id and tree in a step.
constexpr uint64_t kBytesPerWalker = 24;

// The steps that walkers took over one relation, in order.
struct Steps {
  std::vector<uint32_t> owner;  // local ids
  std::vector<uint32_t> neighbor;
  std::vector<uint8_t> step;
  std::vector<int64_t> edge_id;
  std::vector<uint64_t> feature_row;
};

template <typename T>
absl::Status PutInOrder(const std::vector<T>& values,
                        const std::vector<uint32_t>& order,
                        CancelPoller& poller, std::vector<T>& sorted) {
  if (values.empty()) return absl::OkStatus();
  sorted.reserve(order.size());
  return poller.InPieces(order.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) sorted.push_back(values[order[i]]);
  });
}

// Sorts steps by the nodes where they start; steps of one node keep their
// order.
absl::StatusOr<TopologyBuilder::Edges> EdgesOf(const Steps& steps,
                                               uint32_t nodes,
                                               CancelPoller& poller) {
  const std::vector<uint32_t>& owner = steps.owner;
  TopologyBuilder::Edges edges;
  edges.indptr.assign(nodes + size_t{1}, 0);
  MILLRACE_RETURN_IF_ERROR(
      poller.InPieces(owner.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          ++edges.indptr[owner[i] + size_t{1}];
        }
      }));
  std::partial_sum(edges.indptr.begin(), edges.indptr.end(),
                   edges.indptr.begin());
  std::vector<uint32_t> next(edges.indptr.begin(), edges.indptr.end() - 1);
  std::vector<uint32_t> order(owner.size());
  MILLRACE_RETURN_IF_ERROR(
      poller.InPieces(owner.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          order[next[owner[i]]++] = static_cast<uint32_t>(i);
        }
      }));
  MILLRACE_RETURN_IF_ERROR(
      PutInOrder(steps.neighbor, order, poller, edges.neighbor));
  MILLRACE_RETURN_IF_ERROR(PutInOrder(steps.step, order, poller, edges.hop));
  MILLRACE_RETURN_IF_ERROR(
      PutInOrder(steps.edge_id, order, poller, edges.edge_id));
  MILLRACE_RETURN_IF_ERROR(
      PutInOrder(steps.feature_row, order, poller, edges.feature_row));
  return edges;
}

// The whole lists of some nodes.
class WholeLists {
 public:
  WholeLists() = default;
  // `ids`: ascending, each once; `picks` has their lists.
  WholeLists(std::vector<uint64_t> ids, Picks picks);

  // The places of the list of a node, which must be among the ids, in the
  // arrays of picks().
  ListRange Of(uint64_t id) const;
  const Picks& picks() const { return picks_; }
  // The slots of a list whose neighbour is `node`, in order.
  std::span<const uint32_t> SlotsOf(ListRange list, uint64_t node) const;
  // All slots of a list, ordered by (neighbour, slot).
  std::span<const uint32_t> ByNeighbor(ListRange list) const {
    return std::span(by_neighbor_).subspan(list.begin, list.degree);
  }
  uint64_t NeighborAt(ListRange list, int64_t slot) const {
    return picks_.neighbors[list.begin + slot];
  }

 private:
  std::vector<uint64_t> ids_;
  std::vector<int64_t> begin_;  // of each id's list, and the end of the last
  Picks picks_;
  std::vector<uint32_t> by_neighbor_;
};

WholeLists::WholeLists(std::vector<uint64_t> ids, Picks picks)
    : ids_(std::move(ids)), begin_({0}), picks_(std::move(picks)) {
  by_neighbor_.resize(picks_.neighbors.size());
  for (const uint32_t count : picks_.counts) {
    const ListRange list = {begin_.back(), count};
    begin_.push_back(list.begin + list.degree);
    const auto slots = std::span(by_neighbor_).subspan(list.begin, count);
    std::iota(slots.begin(), slots.end(), 0);
    std::sort(slots.begin(), slots.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(NeighborAt(list, a), a) <
             std::pair(NeighborAt(list, b), b);
    });
  }
}

ListRange WholeLists::Of(uint64_t id) const {
  const auto at = std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin();
  return {begin_[at], begin_[at + 1] - begin_[at]};
}

std::span<const uint32_t> WholeLists::SlotsOf(ListRange list,
                                              uint64_t node) const {
  struct ByNeighborOf {
    const WholeLists& lists;
    ListRange list;
    bool operator()(uint32_t slot, uint64_t node) const {
      return lists.NeighborAt(list, slot) < node;
    }
    bool operator()(uint64_t node, uint32_t slot) const {
      return node < lists.NeighborAt(list, slot);
    }
  };
  const std::span<const uint32_t> slots = ByNeighbor(list);
  const auto [first, last] = std::equal_range(slots.begin(), slots.end(), node,
                                              ByNeighborOf{*this, list});
  return {first, last};
}

// Steps of node2vec (Grover and Leskovec 2016): of a walker that came from t, a
// slot has the weight 1/p if its neighbour is t, 1 if that is in the list of t,
// and 1/q else. The lists of t and of the node where the walker is may belong
// to two owners, so both come here whole; that of t was there the step before.
class BiasedSteps {
 public:
  BiasedSteps(const JobSpec& spec, RelationIndex relation,
              NeighborSource& source, CancelPoller& poller);

  // What it takes for each walker.
  static constexpr uint64_t kBytesPerWalker = sizeof(uint64_t);

  // A pick for each of the walkers, which are at the nodes `at` now, or none
  // where the list is empty. Each walker that is there came along by the picks
  // of the call before.
  absl::Status Draw(DrawContext context, std::span<const uint32_t> walkers,
                    std::span<const uint64_t> at, Picks& picks);

 private:
  // A slot whose weight is not that of most slots.
  struct SpecialSlot {
    uint32_t slot;
    uint64_t weight;
    friend auto operator<=>(const SpecialSlot&, const SpecialSlot&) = default;
  };

  absl::Status Fetch(const DrawContext& context, std::vector<uint64_t> ids);
  absl::Status FindSpecialSlots(ListRange list, uint64_t before);
  int64_t SlotAt(uint64_t x, int64_t degree) const;

  const RelationIndex relation_;
  NeighborSource& source_;
  CancelPoller& poller_;
  uint64_t back_weight_;  // 1/p, 1 and 1/q as integers
  uint64_t near_weight_;
  uint64_t far_weight_;
  bool first_ = true;                 // no walker has taken a step
  WholeLists lists_;                  // of the nodes where walkers are
  WholeLists lists_before_;           // and of those where they were
  std::vector<uint64_t> before_;      // by the walker's number: where it was
  std::vector<SpecialSlot> special_;  // scratch
};

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

// Looks each entry of the shorter of two lists up in the other one.
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
    // Equal entries follow each other.
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
    // The number of the walker stands for the node.
    WordStream words(domain, key, walker, /*tree=*/0);
    const int64_t slot = SlotAt(words.Wide(0, total), list.degree);
    picks.AppendNode(lists_.picks(), list.begin + slot, 1);
  }
  first_ = false;
  return absl::OkStatus();
}

class Walkers {
 public:
  Walkers(TopologyBuilder& builder, NeighborSource& source)
      : builder_(builder),
        source_(source),
        columns_(static_cast<size_t>(builder.job().hops) + 1),
        poller_([&source] { return source.CheckNotCancelled(); }),
        steps_(static_cast<size_t>(builder.relation_count())) {
    const ResolvedJob& job = builder.job();
    if (IsBiased(job.spec)) {
      biased_.emplace(job.spec, job.metapath[0], source, poller_);
    }
  }

  // Puts all walkers where they start. Must be called first.
  absl::Status Start();
  absl::Status Step(DrawContext context, int step);
  Array TakePaths();
  absl::Status SetEdges();

 private:
  absl::Status Draw(const DrawContext& context, RelationIndex relation,
                    Picks& picks);
  absl::Status KeepMoved(const Picks& picks);
  absl::Status Move(int step, RelationIndex relation, Picks& picks);

  TopologyBuilder& builder_;
  NeighborSource& source_;
  const size_t columns_;
  CancelPoller poller_;
  std::vector<int32_t> paths_;    // [walkers, columns_]
  std::vector<uint32_t> active_;  // numbers of the walkers that have not ended
  std::vector<uint32_t> at_;      // local ids of the nodes where they are
  std::vector<uint32_t> trees_;   // of these nodes; empty unless disjoint
  std::vector<Steps> steps_;      // per relation
  std::optional<BiasedSteps> biased_;  // draws, if steps depend on each other
};

absl::Status Walkers::Start() {
  const std::vector<uint32_t>& starts = builder_.seed_to_local();
  const auto walks = static_cast<size_t>(builder_.job().spec.walks);
  const size_t walkers = starts.size() * walks;
  MILLRACE_RETURN_IF_ERROR(source_.Reserve(
      walkers * (kBytesPerWalker + columns_ * sizeof(int32_t) +
                 (biased_ ? BiasedSteps::kBytesPerWalker : 0))));
  paths_.reserve(walkers * columns_);
  MILLRACE_RETURN_IF_ERROR(poller_.InPieces(
      walkers * columns_, [&](size_t, size_t end) { paths_.resize(end, -1); }));
  active_.reserve(walkers);
  at_.reserve(walkers);
  return poller_.InPieces(walkers, [&](size_t begin, size_t end) {
    for (size_t w = begin; w < end; ++w) {
      active_.push_back(static_cast<uint32_t>(w));
      at_.push_back(starts[w / walks]);
      paths_[w * columns_] = static_cast<int32_t>(at_.back());
    }
  });
}

absl::Status Walkers::Draw(const DrawContext& context, RelationIndex relation,
                           Picks& picks) {
  const Relabeler& nodes = builder_.nodes(builder_.list_type(relation));
  const bool disjoint = builder_.job().spec.disjoint;
  std::vector<uint64_t> ids;
  ids.reserve(at_.size());
  trees_.clear();
  if (disjoint) trees_.reserve(at_.size());
  MILLRACE_RETURN_IF_ERROR(
      poller_.InPieces(at_.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          ids.push_back(nodes.ids()[at_[i]]);
          if (disjoint) trees_.push_back(nodes.trees()[at_[i]]);
        }
      }));
  if (ids.empty()) return absl::OkStatus();
  if (biased_) return biased_->Draw(context, active_, ids, picks);
  const Frontier frontier = {
      .relation = relation, .fanout = 1, .ids = ids, .trees = active_};
  return source_.Expand(context, std::span(&frontier, 1), std::span(&picks, 1));
}

// Walkers whose list is empty end here.
absl::Status Walkers::KeepMoved(const Picks& picks) {
  size_t left = 0;
  MILLRACE_RETURN_IF_ERROR(
      poller_.InPieces(active_.size(), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          if (picks.counts[i] == 0) continue;
          active_[left] = active_[i];
          at_[left] = at_[i];
          if (!trees_.empty()) trees_[left] = trees_[i];
          ++left;
        }
      }));
  active_.resize(left);
  at_.resize(left);
  if (!trees_.empty()) trees_.resize(left);
  return absl::OkStatus();
}

absl::Status Walkers::Step(DrawContext context, int step) {
  const ResolvedJob& job = builder_.job();
  const RelationIndex relation = job.metapath[step % job.metapath.size()];
  context.hop = step;
  Picks picks;
  MILLRACE_RETURN_IF_ERROR(Draw(context, relation, picks));
  MILLRACE_RETURN_IF_ERROR(KeepMoved(picks));
  MILLRACE_RETURN_IF_ERROR(Move(step, relation, picks));
  return builder_.CloseHop();
}

absl::Status Walkers::Move(int step, RelationIndex relation, Picks& picks) {
  Steps& steps = steps_[relation];
  MILLRACE_RETURN_IF_ERROR(
      builder_.CheckEdgeCount(relation, steps.owner.size() + at_.size()));
  steps.owner.insert(steps.owner.end(), at_.begin(), at_.end());
  steps.step.resize(steps.owner.size(), static_cast<uint8_t>(step));
  steps.edge_id.insert(steps.edge_id.end(), picks.edge_ids.begin(),
                       picks.edge_ids.end());
  steps.feature_row.insert(steps.feature_row.end(), picks.feature_rows.begin(),
                           picks.feature_rows.end());
  at_.clear();
  const std::span<const uint64_t> neighbors = picks.neighbors;
  const std::span<const uint32_t> trees = trees_;
  MILLRACE_RETURN_IF_ERROR(poller_.InPieces(neighbors.size(), [&](size_t begin,
                                                                  size_t end) {
    builder_.AddNodes(
        builder_.neighbor_type(relation), neighbors.subspan(begin, end - begin),
        trees.empty() ? trees : trees.subspan(begin, end - begin), at_);
  }));
  steps.neighbor.insert(steps.neighbor.end(), at_.begin(), at_.end());
  return poller_.InPieces(active_.size(), [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      paths_[active_[i] * columns_ + static_cast<size_t>(step) + 1] =
          static_cast<int32_t>(at_[i]);
    }
  });
}

Array Walkers::TakePaths() {
  const auto walkers = static_cast<int64_t>(paths_.size() / columns_);
  return Array::Adopt(std::move(paths_),
                      {walkers, static_cast<int64_t>(columns_)});
}

absl::Status Walkers::SetEdges() {
  for (RelationIndex r = 0; r < builder_.relation_count(); ++r) {
    const uint32_t nodes = builder_.frontier_end(builder_.list_type(r));
    MILLRACE_ASSIGN_OR_RETURN(TopologyBuilder::Edges edges,
                              EdgesOf(steps_[r], nodes, poller_));
    builder_.SetEdges(r, std::move(edges));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Batch> SampleWalks(DrawContext context, TopologyBuilder& builder,
                                  NeighborSource& source) {
  constexpr uint64_t kMaxWalkers = std::numeric_limits<int32_t>::max();
  const uint64_t walkers = builder.seeds().ids.size() *
                           static_cast<uint64_t>(builder.job().spec.walks);
  if (walkers > kMaxWalkers) {
    return FieldStatus(
        absl::StatusCode::kOutOfRange,
        {.problem = FieldError::Problem::kTooMuch,
         .field = "walks",
         .value = StrCat("a batch would have ", walkers, " walks"),
         .limit = StrCat(kMaxWalkers)});
  }
  context.walk = true;
  context.replace = true;
  Walkers all(builder, source);
  MILLRACE_RETURN_IF_ERROR(all.Start());
  for (int step = 0; step < builder.job().hops; ++step) {
    MILLRACE_RETURN_IF_ERROR(all.Step(context, step));
  }
  MILLRACE_RETURN_IF_ERROR(all.SetEdges());
  Batch batch = builder.Finish(context);
  batch.walks = all.TakePaths();
  return batch;
}

}  // namespace millrace
