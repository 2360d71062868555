// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/draw/relabel.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/job.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// A batch while nodes and edges are being added, hop by hop, by one of the
// methods: numbers the nodes (docs/determinism.md section 5) and keeps the
// edges as CSR by the nodes whose lists they are from.
// Single-threaded; job, manifest and seeds must outlive it.
class TopologyBuilder {
 public:
  TopologyBuilder(const ResolvedJob& job, const Manifest& manifest,
                  const ResolvedSeeds& seeds);

  const ResolvedJob& job() const { return job_; }
  const Schema& schema() const { return schema_; }
  const ResolvedSeeds& seeds() const { return seeds_; }
  int relation_count() const { return static_cast<int>(edges_.size()); }
  TypeIndex list_type(RelationIndex relation) const {
    return ListType(schema_.relations[relation], job_.spec.direction);
  }
  TypeIndex neighbor_type(RelationIndex relation) const {
    return NeighborType(schema_.relations[relation], job_.spec.direction);
  }
  const Relabeler& nodes(TypeIndex type) const { return nodes_[type]; }
  // Local ids of the nodes first seen at the hop before.
  uint32_t frontier_begin(TypeIndex type) const {
    const std::vector<uint32_t>& offsets = hop_offsets_[type];
    return offsets[offsets.size() - 2];
  }
  uint32_t frontier_end(TypeIndex type) const {
    return hop_offsets_[type].back();
  }

  // Adds the seeds and closes their hop.
  absl::Status AddSeeds();

  // Nodes `begin` to below `end` of the type of the relation's lists. Its
  // views are valid until nodes are added.
  Frontier FrontierOf(RelationIndex relation, int32_t fanout, uint32_t begin,
                      uint32_t end);

  // Adds what was picked for the nodes from `begin` on, which must be the
  // first of the relation's that have no edges yet; `visits` is as
  // picks.neighbors, or empty.
  // OUT_OF_RANGE: more than 2^31 - 1 edges of a relation.
  absl::Status AddPicks(RelationIndex relation, uint32_t begin,
                        const Picks& picks,
                        std::span<const uint32_t> visits = {});

  // Local ids of `ids` in `trees` (empty unless disjoint), new ones appended.
  void AddNodes(TypeIndex type, std::span<const uint64_t> ids,
                std::span<const uint32_t> trees, std::vector<uint32_t>& out) {
    nodes_[type].FindOrAppend(ids, trees, out);
  }

  const std::vector<uint32_t>& seed_to_local() const { return seed_to_local_; }

  // OUT_OF_RANGE: `count` edges of a relation are above 2^31 - 1.
  absl::Status CheckEdgeCount(RelationIndex relation, size_t count) const;

  // Replaces all edges of a relation: CSR over all nodes of its lists' type.
  struct Edges {
    std::vector<uint32_t> indptr = {0};
    std::vector<uint32_t> neighbor;
    std::vector<int64_t> edge_id;       // if the job's batch has them
    std::vector<uint64_t> feature_row;  // ditto
    std::vector<uint32_t> visits;       // SampleMethod::kPpr
    std::vector<uint8_t> hop;           // SampleMethod::kWalk
  };
  void SetEdges(RelationIndex relation, Edges edges) {
    edges_[relation] = std::move(edges);
  }

  // Ends a hop: what was added since is the next frontier.
  // OUT_OF_RANGE: more than 2^31 - 1 nodes of a type.
  absl::Status CloseHop();

  // Hands over the batch; the builder is spent.
  Batch Finish(const DrawContext& context);

 private:
  void AddEdgeSeeds();
  // Local ids of `nodes`; `first_tree`, and `per_tree` nodes in each.
  Array AddSeedNodes(TypeIndex type, const ResolvedNodes& nodes,
                     uint32_t first_tree, uint32_t per_tree);
  int64_t TimeOf(uint32_t tree) const {
    // The trees of drawn pairs come after those of the seeds.
    return seeds_.times[tree % seeds_.times.size()];
  }
  Batch Describe(const DrawContext& context) const;
  EdgeBlock FinishEdges(RelationIndex relation, const DrawContext& context);

  const ResolvedJob& job_;
  const Schema& schema_;
  const ResolvedSeeds& seeds_;
  std::vector<Relabeler> nodes_;                    // per node type
  std::vector<std::vector<uint32_t>> hop_offsets_;  // per node type
  std::vector<std::vector<int64_t>> times_;         // per node; temporal jobs
  std::vector<Edges> edges_;                        // per relation
  std::map<RelationIndex, ExcludedEdges> excluded_;
  std::vector<uint32_t> seed_to_local_;
  EdgeSeedBlock edge_seeds_;
  std::vector<uint32_t> neighbor_trees_;  // scratch of AddPicks
};

}  // namespace millrace
