// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/induced.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"

namespace millrace {
namespace {

// Turns the picks of all nodes that have lists of a relation into edges of the
// batch. Owners do not know the trees, so a neighbour may be only in another
// one; such picks are left out.
TopologyBuilder::Edges EdgesAmong(const TopologyBuilder& builder,
                                  RelationIndex relation, const Picks& picks) {
  const Relabeler& owners = builder.nodes(builder.list_type(relation));
  const Relabeler& neighbors = builder.nodes(builder.neighbor_type(relation));
  TopologyBuilder::Edges edges;
  edges.neighbor.reserve(picks.neighbors.size());
  size_t at = 0;
  for (size_t v = 0; v < picks.counts.size(); ++v) {
    const uint32_t tree = owners.trees().empty() ? 0 : owners.trees()[v];
    for (const size_t end = at + picks.counts[v]; at < end; ++at) {
      const auto local = neighbors.Find(picks.neighbors[at], tree);
      if (!local.has_value()) continue;
      edges.neighbor.push_back(*local);
      if (!picks.edge_ids.empty()) {
        edges.edge_id.push_back(picks.edge_ids[at]);
      }
      if (!picks.feature_rows.empty()) {
        edges.feature_row.push_back(picks.feature_rows[at]);
      }
    }
    edges.indptr.push_back(static_cast<uint32_t>(edges.neighbor.size()));
  }
  return edges;
}

}  // namespace

absl::Status InduceEdges(DrawContext context, TopologyBuilder& builder,
                         NeighborSource& source) {
  context.rule = DrawRule::kAmong;
  context.hop = 0;
  std::vector<NodeSet> sets;
  for (size_t t = 0; t < builder.schema().node_types.size(); ++t) {
    const std::vector<uint64_t>& ids =
        builder.nodes(static_cast<TypeIndex>(t)).ids();
    sets.emplace_back(ids.begin(), ids.end());
  }
  std::vector<Frontier> frontiers;
  for (RelationIndex r = 0; r < builder.relation_count(); ++r) {
    const uint32_t end = builder.frontier_end(builder.list_type(r));
    builder.SetEdges(r, {});
    if (end == 0) continue;
    frontiers.push_back(builder.MakeFrontier(r, kAllNeighbors, 0, end));
    frontiers.back().among = &sets[builder.neighbor_type(r)];
  }
  if (frontiers.empty()) return absl::OkStatus();
  std::vector<Picks> picks(frontiers.size());
  MILLRACE_RETURN_IF_ERROR(source.Expand(context, frontiers, picks));
  for (size_t i = 0; i < frontiers.size(); ++i) {
    const RelationIndex relation = frontiers[i].relation;
    MILLRACE_RETURN_IF_ERROR(
        builder.CheckEdgeCount(relation, picks[i].neighbors.size()));
    builder.SetEdges(relation, EdgesAmong(builder, relation, picks[i]));
  }
  return absl::OkStatus();
}

}  // namespace millrace
