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
#include "common/sample/draw/seed_lists.h"
#include "common/sample/job.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

// A batch to which a method adds nodes and edges, hop by hop. Numbers the nodes
// (docs/determinism.md, section 5), and keeps the edges as CSR by the nodes
// whose lists they are from.
// Not thread-safe. `job`, `manifest` and `seeds` must outlive it.
class TopologyBuilder {
 public:
  TopologyBuilder(const ResolvedJob& job, const Manifest& manifest,
                  const ResolvedSeeds& seeds);

  const ResolvedJob& job() const { return job_; }
  const Schema& schema() const { return schema_; }
  const ResolvedSeeds& seeds() const { return seeds_; }
  int relation_count() const { return static_cast<int>(edges_.size()); }
  TypeIndex list_type(RelationIndex relation) const {
    return ListOwnerType(schema_.relations[relation], job_.spec.direction);
  }
  TypeIndex neighbor_type(RelationIndex relation) const {
    return NeighborType(schema_.relations[relation], job_.spec.direction);
  }
  const Relabeler& nodes(TypeIndex type) const { return nodes_[type]; }
  // Local ids of the nodes that first appeared in the previous hop.
  uint32_t frontier_begin(TypeIndex type) const {
    const std::vector<uint32_t>& offsets = hop_offsets_[type];
    return offsets[offsets.size() - 2];
  }
  uint32_t frontier_end(TypeIndex type) const {
    return hop_offsets_[type].back();
  }

  // Adds the seeds and closes their hop. Fails as CloseHop() does.
  absl::Status AddSeeds();

  // The nodes with local ids [begin, end) of the type that has the relation's
  // lists. The views in the result are valid until nodes are added.
  Frontier MakeFrontier(RelationIndex relation, int32_t fanout, uint32_t begin,
                        uint32_t end);

  // Adds what was picked for the nodes from `begin` on, which must not have
  // edges of the relation yet. `visits` is parallel to picks.neighbors or
  // empty. OUT_OF_RANGE: more than 2^31 - 1 edges of a relation.
  absl::Status AddPicks(RelationIndex relation, uint32_t begin,
                        const Picks& picks,
                        std::span<const uint32_t> visits = {});

  // Appends the local ids of `ids` in `trees` (empty unless disjoint) to `out`,
  // after adding new nodes.
  void AddNodes(TypeIndex type, std::span<const uint64_t> ids,
                std::span<const uint32_t> trees, std::vector<uint32_t>& out) {
    nodes_[type].FindOrAppend(ids, trees, out);
  }

  // Local ids of the seeds; of edge seeds, those of the sources.
  std::span<const uint32_t> seed_locals() const {
    return seed_locals_.front().locals.As<uint32_t>();
  }

  // OUT_OF_RANGE: `count` is above 2^31 - 1. The message names the relation.
  absl::Status CheckEdgeCount(RelationIndex relation, size_t count) const;

  // Edges of a relation as CSR over the nodes that have its lists; columns that
  // the batch does not have are empty.
  struct Edges {
    std::vector<uint32_t> indptr = {0};
    std::vector<uint32_t> neighbor;
    std::vector<int64_t> edge_id;
    std::vector<uint64_t> feature_row;
    std::vector<uint32_t> visits;  // SampleMethod::kPpr
    std::vector<uint8_t> hop;      // SampleMethod::kWalk
  };
  // Replaces all edges of a relation.
  void SetEdges(RelationIndex relation, Edges edges) {
    edges_[relation] = std::move(edges);
  }

  // Ends a hop. The nodes that it added are the next frontier.
  // OUT_OF_RANGE: more than 2^31 - 1 nodes of a type.
  absl::Status CloseHop();

  // Hands over the batch. The builder must not be used afterwards.
  Batch Finish(const DrawContext& context);

 private:
  struct SeedLocals {
    SeedList::Role role;
    Array locals;  // [n] uint32
  };

  int64_t TimeOf(uint32_t tree) const {
    // The trees of drawn pairs come after those of the seeds.
    return seeds_.times[tree % seeds_.times.size()];
  }
  EdgeBlock FinishEdges(RelationIndex relation, const DrawContext& context);

  const ResolvedJob& job_;
  const Schema& schema_;
  const ResolvedSeeds& seeds_;
  std::vector<Relabeler> nodes_;                    // per node type
  std::vector<std::vector<uint32_t>> hop_offsets_;  // per node type
  std::vector<std::vector<int64_t>> times_;         // [type][local id]
  std::vector<Edges> edges_;                        // per relation
  std::map<RelationIndex, ExcludedEdges> excluded_;
  std::vector<SeedLocals> seed_locals_;   // in the order of SeedLists()
  std::vector<uint32_t> neighbor_trees_;  // scratch of AddPicks
};

}  // namespace millrace
