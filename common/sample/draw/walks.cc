// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/walks.h"

#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/cancel_poller.h"
#include "common/sample/draw/biased_steps.h"

namespace millrace {
namespace {

// Memory per walker in addition to its path and draws: its number, its
// position, and its id and tree in a step.
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

// The walkers of a batch, which take their steps together.
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
  std::vector<uint32_t> trees_;   // trees of these nodes; empty unless disjoint
  std::vector<Steps> steps_;      // per relation
  std::optional<BiasedSteps> biased_;  // draws, if steps depend on each other
};

absl::Status Walkers::Start() {
  const std::span<const uint32_t> starts = builder_.seed_locals();
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
