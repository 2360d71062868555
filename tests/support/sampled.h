// SPDX-License-Identifier: Apache-2.0
// Batches made without servers, as plain values. A test must add
// store_builder.cc to its SOURCES and millrace::sample to its LINK.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/node_seeds.h"
#include "tests/support/test_store.h"

namespace millrace::testing {

// pyg-lib's cycles: the list of v is v - 1 and v + 1, with edge ids 2v and 2v +
// 1.
inline TestGraph Cycle(int64_t nodes) {
  TestGraph graph;
  graph.types = {{.name = "node", .count = nodes}};
  graph.relations = {{}};
  for (int64_t v = 0; v < nodes; ++v) {
    graph.relations[0].edges.push_back({(v + nodes - 1) % nodes, v});
    graph.relations[0].edges.push_back({(v + 1) % nodes, v});
  }
  return graph;
}

// A source of `graph`, stored in `parts` partitions, or as a dataset if 0.
inline std::unique_ptr<LocalBatchSource> OpenGraph(const TestGraph& graph,
                                                   int parts) {
  return LocalBatchSource::Create(TestStore(graph, parts).Open(), 1).value();
}

// A job with explicit seeds.
inline JobSpec ExplicitJob(Fanouts fanouts, std::string seed_type = "") {
  JobSpec spec;
  spec.split.clear();
  spec.fanouts = std::move(fanouts);
  spec.seed_type = std::move(seed_type);
  return spec;
}

inline absl::StatusOr<Batch> Sample(const LocalBatchSource& source,
                                    const JobSpec& spec, const Seeds& seeds,
                                    uint32_t batch = 0,
                                    bool edge_features = false) {
  absl::StatusOr<ResolvedJob> job = ResolveJob(spec, source.manifest());
  if (!job.ok()) return job.status();
  return source.Make(*job, {.batch = batch,
                            .explicit_seeds = seeds,
                            .columns = DigestColumns(false, edge_features)});
}

inline std::vector<int64_t> Int64s(const Array& array) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < array.rows(); ++i) {
    values.push_back(array.IntegerAt(i));
  }
  return values;
}

// Identifies a node of a batch by its original id.
struct SampledNode {
  int64_t original = 0;
  int64_t tree = 0;  // 0 unless disjoint
  friend auto operator<=>(const SampledNode&, const SampledNode&) = default;
};

inline std::vector<SampledNode> NodesOf(const Batch& batch, TypeIndex type) {
  std::vector<SampledNode> nodes;
  const NodeBlock& block = batch.nodes[type];
  for (int64_t v = 0; v < block.count(); ++v) {
    nodes.push_back({block.original_id.IntegerAt(v),
                     batch.disjoint ? block.tree.IntegerAt(v) : 0});
  }
  return nodes;
}

struct SampledEdge {
  SampledNode owner;     // the node whose list it is from
  SampledNode neighbor;  // its other end
  int64_t edge_id = 0;
  int64_t owner_local = 0;
  int64_t neighbor_local = 0;
};

// The edges of a relation in the order of the batch.
inline std::vector<SampledEdge> EdgesOf(const Batch& batch,
                                        const Schema& schema,
                                        RelationIndex relation) {
  const Relation& of = schema.relations[relation];
  const auto owners = NodesOf(batch, ListOwnerType(of, batch.direction));
  const auto neighbors = NodesOf(batch, NeighborType(of, batch.direction));
  const EdgeBlock& block = batch.edges[relation];
  std::vector<SampledEdge> edges;
  for (int64_t v = 0; v + 1 < block.indptr.rows(); ++v) {
    for (int64_t e = block.indptr.IntegerAt(v);
         e < block.indptr.IntegerAt(v + 1); ++e) {
      const int64_t neighbor = block.neighbor.IntegerAt(e);
      edges.push_back({owners.at(v), neighbors.at(neighbor),
                       block.edge_id.IntegerAt(e), v, neighbor});
    }
  }
  EXPECT_EQ(static_cast<int64_t>(edges.size()), block.edge_count());
  return edges;
}

// The local ids of the frontier nodes of a relation's edges: pyg-lib's `row`,
// where EdgeBlock::neighbor is its `col`.
inline std::vector<int64_t> RowsOf(const Batch& batch, const Schema& schema,
                                   RelationIndex relation = 0) {
  std::vector<int64_t> rows;
  for (const SampledEdge& edge : EdgesOf(batch, schema, relation)) {
    rows.push_back(edge.owner_local);
  }
  return rows;
}

// Two node types and three relations, random multigraphs with weights (some 0):
// "buys" (user to item, with edge times and features), "likes" (item to user)
// and "cites" (item to item, with features). Items have times. All times are 0
// to 9, unsorted, with many ties. A test must add random_graph.cc to its
// SOURCES.
TestGraph RandomGraph(uint32_t seed);

}  // namespace millrace::testing
