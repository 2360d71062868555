// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/topology_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kMaxRows = std::numeric_limits<int32_t>::max();

// `what` is e.g. "5 nodes of user".
absl::Status TooLarge(const std::string& what) {
  return FieldStatus(absl::StatusCode::kOutOfRange,
                     {.problem = FieldError::Problem::kTooMuch,
                      .field = "batch_size",
                      .value = StrCat("a batch would hold ", what),
                      .limit = StrCat(kMaxRows)});
}

Array AdoptIds(std::vector<uint64_t> ids, DType id_dtype) {
  if (id_dtype == DType::kUint64) return Array::Adopt(std::move(ids));
  return Array::Adopt(std::vector<uint32_t>(ids.begin(), ids.end()));
}

}  // namespace

TopologyBuilder::TopologyBuilder(const ResolvedJob& job,
                                 const Manifest& manifest,
                                 const ResolvedSeeds& seeds)
    : job_(job),
      schema_(manifest.schema),
      seeds_(seeds),
      hop_offsets_(schema_.node_types.size(), {0}),
      times_(schema_.node_types.size()),
      edges_(schema_.relations.size()),
      excluded_(ExcludedBySeeds(job, schema_, seeds)) {
  for (size_t t = 0; t < schema_.node_types.size(); ++t) {
    nodes_.emplace_back(job.spec.disjoint);
  }
}

absl::Status TopologyBuilder::AddSeeds() {
  for (const SeedList& list : SeedLists(job_, schema_, seeds_)) {
    std::vector<uint32_t> locals;
    AddNodes(list.type, list.ids, list.trees, locals);
    seed_locals_.push_back({list.role, Array::Adopt(std::move(locals))});
  }
  return CloseHop();
}

Frontier TopologyBuilder::MakeFrontier(RelationIndex relation, int32_t fanout,
                                       uint32_t begin, uint32_t end) {
  const TypeIndex type = list_type(relation);
  const size_t size = end - begin;
  Frontier frontier{.relation = relation, .fanout = fanout};
  frontier.ids = std::span(nodes_[type].ids()).subspan(begin, size);
  if (job_.spec.disjoint) {
    frontier.trees = std::span(nodes_[type].trees()).subspan(begin, size);
  }
  if (job_.spec.temporal != TemporalStrategy::kNone) {
    std::vector<int64_t>& times = times_[type];
    const std::vector<uint32_t>& trees = nodes_[type].trees();
    while (times.size() < end) {
      times.push_back(TimeOf(trees[times.size()]));
    }
    frontier.times = std::span(times).subspan(begin, size);
  }
  const auto excluded = excluded_.find(relation);
  if (excluded != excluded_.end()) frontier.excluded = &excluded->second;
  return frontier;
}

absl::Status TopologyBuilder::CheckEdgeCount(RelationIndex relation,
                                             size_t count) const {
  if (count <= kMaxRows) return absl::OkStatus();
  return TooLarge(StrCat(count, " edges of ", schema_.RelationName(relation)));
}

absl::Status TopologyBuilder::AddPicks(RelationIndex relation, uint32_t begin,
                                       const Picks& picks,
                                       std::span<const uint32_t> visits) {
  Edges& edges = edges_[relation];
  MILLRACE_RETURN_IF_ERROR(
      CheckEdgeCount(relation, edges.neighbor.size() + picks.neighbors.size()));
  // Nodes before `begin` that had no part in earlier hops have no edges.
  edges.indptr.resize(begin + size_t{1}, edges.indptr.back());
  const std::vector<uint32_t>& trees = nodes_[list_type(relation)].trees();
  neighbor_trees_.clear();
  uint32_t offset = edges.indptr.back();
  for (size_t i = 0; i < picks.counts.size(); ++i) {
    offset += picks.counts[i];
    edges.indptr.push_back(offset);
    if (job_.spec.disjoint) {
      neighbor_trees_.insert(neighbor_trees_.end(), picks.counts[i],
                             trees[begin + i]);
    }
  }
  AddNodes(neighbor_type(relation), picks.neighbors, neighbor_trees_,
           edges.neighbor);
  edges.edge_id.insert(edges.edge_id.end(), picks.edge_ids.begin(),
                       picks.edge_ids.end());
  edges.feature_row.insert(edges.feature_row.end(), picks.feature_rows.begin(),
                           picks.feature_rows.end());
  edges.visits.insert(edges.visits.end(), visits.begin(), visits.end());
  return absl::OkStatus();
}

absl::Status TopologyBuilder::CloseHop() {
  for (size_t t = 0; t < nodes_.size(); ++t) {
    if (nodes_[t].ids().size() > kMaxRows) {
      return TooLarge(StrCat(nodes_[t].ids().size(), " nodes of ",
                             schema_.node_types[t].name));
    }
    hop_offsets_[t].push_back(nodes_[t].count());
  }
  return absl::OkStatus();
}

EdgeBlock TopologyBuilder::FinishEdges(RelationIndex relation,
                                       const DrawContext& context) {
  Edges& edges = edges_[relation];
  // Nodes whose lists were not read have no edges.
  const std::vector<uint32_t>& offsets = hop_offsets_[list_type(relation)];
  const size_t expanded =
      EdgesOfAllNodes(job_.spec.method) ? offsets.back() : offsets[job_.hops];
  edges.indptr.resize(expanded + 1, edges.indptr.back());
  EdgeBlock block;
  block.indptr = Array::Adopt(std::move(edges.indptr));
  block.neighbor = Array::Adopt(std::move(edges.neighbor));
  if (context.edge_ids) {
    block.edge_id = Array::Adopt(std::move(edges.edge_id));
  }
  if (context.feature_rows && schema_.relations[relation].feature.present()) {
    block.feature_row = Array::Adopt(std::move(edges.feature_row));
  }
  if (job_.spec.method == SampleMethod::kPpr) {
    block.visits = Array::Adopt(std::move(edges.visits));
  }
  if (job_.spec.method == SampleMethod::kWalk) {
    block.hop = Array::Adopt(std::move(edges.hop));
  }
  return block;
}

Batch TopologyBuilder::Finish(const DrawContext& context) {
  Batch batch = BatchOfSeeds(job_, seeds_, context.epoch, context.batch);
  for (const auto& [role, locals] : seed_locals_) {
    SetSeedLocals(role, locals, batch);
  }
  for (RelationIndex r = 0; r < relation_count(); ++r) {
    batch.edges.push_back(FinishEdges(r, context));
  }
  for (size_t t = 0; t < nodes_.size(); ++t) {
    NodeBlock& block = batch.nodes.emplace_back();
    block.hop_offsets = std::move(hop_offsets_[t]);
    if (batch.disjoint) block.tree = Array::Adopt(nodes_[t].TakeTrees());
    block.id = AdoptIds(nodes_[t].TakeIds(), schema_.node_types[t].id_dtype());
  }
  return batch;
}

}  // namespace millrace
