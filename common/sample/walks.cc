// SPDX-License-Identifier: Apache-2.0
#include "common/sample/walks.h"

#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// The steps that were taken over one relation, in order.
struct Steps {
  std::vector<uint32_t> owner;  // local ids
  std::vector<uint32_t> neighbor;
  std::vector<uint8_t> step;
  std::vector<int64_t> edge_id;
  std::vector<uint64_t> feature_row;
};

template <typename T>
std::vector<T> InOrder(const std::vector<T>& values,
                       const std::vector<uint32_t>& order) {
  std::vector<T> sorted;
  if (values.empty()) return sorted;
  sorted.reserve(order.size());
  for (const uint32_t at : order) sorted.push_back(values[at]);
  return sorted;
}

// Sorts steps by the nodes they start at, else in their order.
TopologyBuilder::Edges EdgesOf(const Steps& steps, uint32_t nodes) {
  TopologyBuilder::Edges edges;
  edges.indptr.assign(nodes + size_t{1}, 0);
  for (const uint32_t owner : steps.owner) ++edges.indptr[owner + size_t{1}];
  std::partial_sum(edges.indptr.begin(), edges.indptr.end(),
                   edges.indptr.begin());
  std::vector<uint32_t> next(edges.indptr.begin(), edges.indptr.end() - 1);
  std::vector<uint32_t> order(steps.owner.size());
  for (size_t i = 0; i < steps.owner.size(); ++i) {
    order[next[steps.owner[i]]++] = static_cast<uint32_t>(i);
  }
  edges.neighbor = InOrder(steps.neighbor, order);
  edges.hop = InOrder(steps.step, order);
  edges.edge_id = InOrder(steps.edge_id, order);
  edges.feature_row = InOrder(steps.feature_row, order);
  return edges;
}

class Walkers {
 public:
  Walkers(TopologyBuilder& builder, const std::vector<uint32_t>& starts)
      : builder_(builder),
        columns_(static_cast<size_t>(builder.job().hops) + 1),
        steps_(static_cast<size_t>(builder.relation_count())) {
    const auto walks = static_cast<size_t>(builder.job().spec.walks);
    paths_.assign(starts.size() * walks * columns_, -1);
    for (size_t w = 0; w < starts.size() * walks; ++w) {
      active_.push_back(static_cast<uint32_t>(w));
      at_.push_back(starts[w / walks]);
      paths_[w * columns_] = static_cast<int32_t>(at_.back());
    }
  }

  // Lets every walker that is left take a step.
  absl::Status Step(DrawContext context, int step, NeighborSource& source);
  Array TakePaths();
  void SetEdges();

 private:
  TopologyBuilder& builder_;
  const size_t columns_;
  std::vector<int32_t> paths_;    // [walkers, columns_]
  std::vector<uint32_t> active_;  // numbers of those that have not ended
  std::vector<uint32_t> at_;      // local ids of where they are
  std::vector<Steps> steps_;      // per relation
};

absl::Status Walkers::Step(DrawContext context, int step,
                           NeighborSource& source) {
  const ResolvedJob& job = builder_.job();
  const RelationIndex relation = job.metapath[step % job.metapath.size()];
  const Relabeler& nodes = builder_.nodes(builder_.list_type(relation));
  context.hop = step;
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;
  for (const uint32_t at : at_) {
    ids.push_back(nodes.ids()[at]);
    if (job.spec.disjoint) trees.push_back(nodes.trees()[at]);
  }
  const Frontier frontier = {
      .relation = relation, .fanout = 1, .ids = ids, .trees = active_};
  Picks picks;
  if (!ids.empty()) {
    MILLRACE_RETURN_IF_ERROR(
        source.Expand(context, std::span(&frontier, 1), std::span(&picks, 1)));
  }
  // Those whose list is empty end here.
  size_t left = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    if (picks.counts[i] == 0) continue;
    active_[left] = active_[i];
    at_[left] = at_[i];
    if (job.spec.disjoint) trees[left] = trees[i];
    ++left;
  }
  active_.resize(left);
  at_.resize(left);
  trees.resize(job.spec.disjoint ? left : 0);
  Steps& steps = steps_[relation];
  MILLRACE_RETURN_IF_ERROR(
      builder_.CheckEdgeCount(relation, steps.owner.size() + left));
  steps.owner.insert(steps.owner.end(), at_.begin(), at_.end());
  steps.step.resize(steps.owner.size(), static_cast<uint8_t>(step));
  steps.edge_id.insert(steps.edge_id.end(), picks.edge_ids.begin(),
                       picks.edge_ids.end());
  steps.feature_row.insert(steps.feature_row.end(), picks.feature_rows.begin(),
                           picks.feature_rows.end());
  at_.clear();
  builder_.AddNodes(builder_.neighbor_type(relation), picks.neighbors, trees,
                    at_);
  steps.neighbor.insert(steps.neighbor.end(), at_.begin(), at_.end());
  for (size_t i = 0; i < active_.size(); ++i) {
    paths_[active_[i] * columns_ + static_cast<size_t>(step) + 1] =
        static_cast<int32_t>(at_[i]);
  }
  return builder_.CloseHop();
}

Array Walkers::TakePaths() {
  const auto walkers = static_cast<int64_t>(paths_.size() / columns_);
  return Array::Adopt(std::move(paths_),
                      {walkers, static_cast<int64_t>(columns_)});
}

void Walkers::SetEdges() {
  for (RelationIndex r = 0; r < builder_.relation_count(); ++r) {
    builder_.SetEdges(
        r, EdgesOf(steps_[r], builder_.frontier_end(builder_.list_type(r))));
  }
}

}  // namespace

absl::StatusOr<Batch> SampleWalks(DrawContext context, TopologyBuilder& builder,
                                  NeighborSource& source) {
  constexpr uint64_t kMaxWalkers = std::numeric_limits<int32_t>::max();
  const uint64_t walkers = builder.seeds().ids.size() *
                           static_cast<uint64_t>(builder.job().spec.walks);
  if (walkers > kMaxWalkers) {
    return absl::OutOfRangeError(
        StrCat("a batch would have ", walkers, " walks; the limit is ",
               kMaxWalkers, "\nuse a smaller --batch-size or --walks"));
  }
  context.walk = true;
  context.replace = true;
  Walkers all(builder, builder.seed_to_local());
  for (int step = 0; step < builder.job().hops; ++step) {
    MILLRACE_RETURN_IF_ERROR(all.Step(context, step, source));
  }
  all.SetEdges();
  Batch batch = builder.Finish(context);
  batch.walks = all.TakePaths();
  return batch;
}

}  // namespace millrace
