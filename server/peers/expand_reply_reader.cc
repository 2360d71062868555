// SPDX-License-Identifier: Apache-2.0
#include "server/peers/expand_reply_reader.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/wire/ids.h"
#include "sampler.pb.h"

namespace millrace {

absl::StatusOr<size_t> AppendPicks(const v1::ExpandReply_Picks& in,
                                   const Schema& schema,
                                   const DrawContext& draw,
                                   const Frontier& frontier, Picks& picks) {
  const Relation& relation = schema.relations[frontier.relation];
  const NodeType& neighbors_of =
      schema.node_types[NeighborType(relation, draw.direction)];
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<uint32_t> counts,
                            ReadRaw<uint32_t>(in.counts(), "counts"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> neighbors,
      ReadIds(in.neighbors(), neighbors_of.id_dtype(), 0,
              static_cast<uint64_t>(neighbors_of.count), "neighbors"));
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<int64_t> edge_ids,
                            ReadRaw<int64_t>(in.edge_ids(), "edge_ids"));
  MILLRACE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> feature_rows,
      ReadRaw<uint64_t>(in.feature_rows(), "feature_rows"));
  const bool has_rows = draw.feature_rows && relation.feature.present();
  const uint64_t total =
      std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  const bool too_many =
      frontier.fanout >= 0 &&
      std::any_of(counts.begin(), counts.end(), [&frontier](uint32_t count) {
        return count > static_cast<uint32_t>(frontier.fanout);
      });
  if (total != neighbors.size() || too_many ||
      edge_ids.size() != (draw.edge_ids ? neighbors.size() : 0) ||
      feature_rows.size() != (has_rows ? neighbors.size() : 0)) {
    return absl::InternalError(
        StrCat("the picks of relation ", relation.name, " are inconsistent"));
  }
  picks.counts.insert(picks.counts.end(), counts.begin(), counts.end());
  picks.neighbors.insert(picks.neighbors.end(), neighbors.begin(),
                         neighbors.end());
  picks.edge_ids.insert(picks.edge_ids.end(), edge_ids.begin(), edge_ids.end());
  picks.feature_rows.insert(picks.feature_rows.end(), feature_rows.begin(),
                            feature_rows.end());
  return counts.size();
}

}  // namespace millrace
