// SPDX-License-Identifier: Apache-2.0
#include "common/sample/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/relabel.h"

namespace millrace {
namespace {

constexpr size_t kMaxRows = std::numeric_limits<int32_t>::max();

// A batch while its hops are being added.
class TopologyBuilder {
 public:
  TopologyBuilder(const ResolvedJob& job, const Manifest& manifest,
                  uint32_t epoch, uint32_t batch, bool edge_ids)
      : job_(job),
        schema_(manifest.schema),
        context_{.job_seed = job.spec.seed,
                 .epoch = epoch,
                 .batch = batch,
                 .direction = job.spec.direction,
                 .replace = job.spec.replace,
                 .edge_ids = edge_ids},
        hop_offsets_(schema_.node_types.size(), {0}),
        edges_(schema_.relations.size()) {
    for (size_t t = 0; t < schema_.node_types.size(); ++t) {
      nodes_.emplace_back(job.spec.disjoint);
    }
  }

  absl::Status AddSeeds(const BatchSeeds& seeds);
  absl::Status AddHop(int hop, NeighborSource& source);
  Batch Finish(const BatchSeeds& seeds);

 private:
  // A relation's edges so far: CSR over its expanded nodes.
  struct Edges {
    std::vector<uint32_t> indptr = {0};
    std::vector<uint32_t> neighbor;
    std::vector<int64_t> edge_id;
  };

  std::vector<Frontier> MakeFrontiers(int hop) const;
  // `frontier`'s views are not valid any more.
  absl::Status AddPicks(const Frontier& frontier, Picks& picks);
  absl::Status CloseHop();

  TypeIndex list_type(RelationIndex relation) const {
    return ListType(schema_.relations[relation], job_.spec.direction);
  }
  // First local id of the frontier of the hop being built.
  uint32_t frontier_begin(TypeIndex type) const {
    const std::vector<uint32_t>& offsets = hop_offsets_[type];
    return offsets[offsets.size() - 2];
  }
  uint32_t frontier_end(TypeIndex type) const {
    return hop_offsets_[type].back();
  }

  const ResolvedJob& job_;
  const Schema& schema_;
  DrawContext context_;
  std::vector<Relabeler> nodes_;                    // per node type
  std::vector<std::vector<uint32_t>> hop_offsets_;  // per node type
  std::vector<Edges> edges_;                        // per relation
  std::vector<uint32_t> seed_to_local_;
  std::vector<uint32_t> neighbor_trees_;  // scratch of AddPicks
};

absl::Status TopologyBuilder::AddSeeds(const BatchSeeds& seeds) {
  std::vector<uint32_t> trees;
  if (job_.spec.disjoint) {
    trees.resize(seeds.ids.size());
    std::iota(trees.begin(), trees.end(), 0u);
  }
  nodes_[job_.seed_type].FindOrAppend(seeds.ids, trees, seed_to_local_);
  return CloseHop();
}

std::vector<Frontier> TopologyBuilder::MakeFrontiers(int hop) const {
  std::vector<Frontier> frontiers;
  for (RelationIndex r = 0; r < static_cast<int>(edges_.size()); ++r) {
    const TypeIndex type = list_type(r);
    const uint32_t begin = frontier_begin(type);
    const uint32_t size = frontier_end(type) - begin;
    if (job_.fanouts[r][hop] == 0 || size == 0) continue;
    Frontier frontier{.relation = r, .fanout = job_.fanouts[r][hop]};
    frontier.ids = std::span(nodes_[type].ids()).subspan(begin, size);
    if (job_.spec.disjoint) {
      frontier.trees = std::span(nodes_[type].trees()).subspan(begin, size);
    }
    frontiers.push_back(frontier);
  }
  return frontiers;
}

absl::Status TopologyBuilder::AddHop(int hop, NeighborSource& source) {
  context_.hop = hop;
  const std::vector<Frontier> frontiers = MakeFrontiers(hop);
  std::vector<Picks> picks(frontiers.size());
  if (!frontiers.empty()) {
    MILLRACE_RETURN_IF_ERROR(source.Expand(context_, frontiers, picks));
  }
  for (size_t i = 0; i < frontiers.size(); ++i) {
    MILLRACE_RETURN_IF_ERROR(AddPicks(frontiers[i], picks[i]));
  }
  // Relations that did not take part have empty lists for this frontier.
  for (RelationIndex r = 0; r < static_cast<int>(edges_.size()); ++r) {
    std::vector<uint32_t>& indptr = edges_[r].indptr;
    indptr.resize(frontier_end(list_type(r)) + size_t{1}, indptr.back());
  }
  return CloseHop();
}

absl::Status TopologyBuilder::AddPicks(const Frontier& frontier, Picks& picks) {
  Edges& edges = edges_[frontier.relation];
  const size_t total = edges.neighbor.size() + picks.neighbors.size();
  if (total > kMaxRows) {
    return absl::OutOfRangeError(
        StrCat("a batch would hold ", total, " edges of ",
               schema_.RelationName(frontier.relation), "; the limit is ",
               kMaxRows, "\nuse a smaller --batch-size or smaller --fanouts"));
  }
  // Not frontier.trees: the relations before this one may have moved them.
  const TypeIndex type = list_type(frontier.relation);
  const uint32_t first = frontier_begin(type);
  neighbor_trees_.clear();
  uint32_t offset = edges.indptr.back();
  for (size_t i = 0; i < picks.counts.size(); ++i) {
    offset += picks.counts[i];
    edges.indptr.push_back(offset);
    if (job_.spec.disjoint) {
      neighbor_trees_.insert(neighbor_trees_.end(), picks.counts[i],
                             nodes_[type].trees()[first + i]);
    }
  }
  const TypeIndex neighbor_type =
      NeighborType(schema_.relations[frontier.relation], job_.spec.direction);
  nodes_[neighbor_type].FindOrAppend(picks.neighbors, neighbor_trees_,
                                     edges.neighbor);
  edges.edge_id.insert(edges.edge_id.end(), picks.edge_ids.begin(),
                       picks.edge_ids.end());
  return absl::OkStatus();
}

absl::Status TopologyBuilder::CloseHop() {
  for (size_t t = 0; t < nodes_.size(); ++t) {
    if (nodes_[t].ids().size() > kMaxRows) {
      return absl::OutOfRangeError(
          StrCat("a batch would hold ", nodes_[t].ids().size(), " nodes of ",
                 schema_.node_types[t].name, "; the limit is ", kMaxRows,
                 "\nuse a smaller --batch-size or smaller --fanouts"));
    }
    hop_offsets_[t].push_back(nodes_[t].count());
  }
  return absl::OkStatus();
}

Array AdoptIds(std::vector<uint64_t> ids, DType id_dtype) {
  if (id_dtype == DType::kUint64) return Array::Adopt(std::move(ids));
  return Array::Adopt(std::vector<uint32_t>(ids.begin(), ids.end()));
}

Batch TopologyBuilder::Finish(const BatchSeeds& seeds) {
  Batch batch;
  batch.epoch = context_.epoch;
  batch.index = context_.batch;
  batch.seed_type = job_.seed_type;
  batch.direction = job_.spec.direction;
  batch.hops = job_.hops;
  batch.disjoint = job_.spec.disjoint;
  batch.seed = Array::Adopt(std::vector<int64_t>(seeds.original_ids.begin(),
                                                 seeds.original_ids.end()));
  batch.seed_to_local = Array::Adopt(std::move(seed_to_local_));
  batch.nodes.resize(nodes_.size());
  for (size_t t = 0; t < nodes_.size(); ++t) {
    NodeBlock& block = batch.nodes[t];
    block.hop_offsets = std::move(hop_offsets_[t]);
    if (batch.disjoint) block.tree = Array::Adopt(nodes_[t].TakeTrees());
    block.id = AdoptIds(nodes_[t].TakeIds(), schema_.node_types[t].id_dtype());
  }
  batch.edges.resize(edges_.size());
  for (size_t r = 0; r < edges_.size(); ++r) {
    EdgeBlock& block = batch.edges[r];
    block.indptr = Array::Adopt(std::move(edges_[r].indptr));
    block.neighbor = Array::Adopt(std::move(edges_[r].neighbor));
    if (context_.edge_ids) {
      block.edge_id = Array::Adopt(std::move(edges_[r].edge_id));
    }
  }
  return batch;
}

}  // namespace

absl::StatusOr<Batch> SampleTopology(const ResolvedJob& job,
                                     const Manifest& manifest, uint32_t epoch,
                                     uint32_t batch, const BatchSeeds& seeds,
                                     bool edge_ids, NeighborSource& source) {
  TopologyBuilder builder(job, manifest, epoch, batch, edge_ids);
  MILLRACE_RETURN_IF_ERROR(builder.AddSeeds(seeds));
  for (int hop = 0; hop < job.hops; ++hop) {
    MILLRACE_RETURN_IF_ERROR(builder.AddHop(hop, source));
  }
  return builder.Finish(seeds);
}

}  // namespace millrace
