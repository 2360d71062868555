// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/sampler.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/draw/induced.h"
#include "common/sample/draw/ppr.h"
#include "common/sample/draw/topology_builder.h"
#include "common/sample/draw/walks.h"
#include "common/sample/draw_rule.h"

namespace millrace {
namespace {

// With replacement, a node has as many picks as the fanout, however few its
// neighbours. Refuses more picks than a batch can hold before they are drawn.
absl::Status CheckPickCount(const DrawContext& context,
                            const Frontier& frontier) {
  constexpr uint64_t kMaxPicks = std::numeric_limits<int32_t>::max();
  if (!context.replace || frontier.fanout == kAllNeighbors) {
    return absl::OkStatus();
  }
  const uint64_t picks =
      static_cast<uint64_t>(frontier.fanout) * frontier.ids.size();
  if (picks <= kMaxPicks) return absl::OkStatus();
  return FieldStatus(
      absl::StatusCode::kOutOfRange,
      {.problem = FieldError::Problem::kTooMuch,
       .field = "fanouts",
       .value = StrCat("with replacement, hop ", context.hop, " draws ",
                       frontier.fanout, " edges for each of ",
                       frontier.ids.size(), " nodes"),
       .limit = StrCat(kMaxPicks, " in all")});
}

absl::Status AddHop(int hop, DrawContext context, TopologyBuilder& builder,
                    NeighborSource& source) {
  context.hop = hop;
  std::vector<Frontier> frontiers;
  for (RelationIndex r = 0; r < builder.relation_count(); ++r) {
    const TypeIndex type = builder.list_type(r);
    const uint32_t begin = builder.frontier_begin(type);
    const uint32_t end = builder.frontier_end(type);
    const int32_t fanout = builder.job().fanouts[r][hop];
    if (fanout == 0 || begin == end) continue;
    frontiers.push_back(builder.MakeFrontier(r, fanout, begin, end));
    MILLRACE_RETURN_IF_ERROR(CheckPickCount(context, frontiers.back()));
  }
  std::vector<Picks> picks(frontiers.size());
  if (!frontiers.empty()) {
    MILLRACE_RETURN_IF_ERROR(source.Expand(context, frontiers, picks));
  }
  for (size_t i = 0; i < frontiers.size(); ++i) {
    const RelationIndex relation = frontiers[i].relation;
    const uint32_t begin = builder.frontier_begin(builder.list_type(relation));
    MILLRACE_RETURN_IF_ERROR(builder.AddPicks(relation, begin, picks[i]));
    picks[i] = {};
  }
  return builder.CloseHop();
}

}  // namespace

absl::Status CheckTopologyInput(const ResolvedJob& job,
                                const TopologyRequest& request,
                                const ResolvedSeeds& seeds) {
  if (job.spec.temporal != TemporalStrategy::kNone &&
      seeds.times.size() != seeds.ids.size()) {
    const bool edges = job.spec.seed_kind == SeedKind::kEdge;
    return InvalidField(
        {.field = "temporal",
         .limit = StrCat(seeds.times.size(), " times for ", seeds.ids.size(),
                         edges ? " edge seeds" : " seeds")});
  }
  if (request.feature_rows && job.spec.method == SampleMethod::kPpr) {
    return InvalidField({.problem = FieldError::Problem::kConflict,
                         .field = "edge_features",
                         .other_field = "method",
                         .other_value = "ppr"});
  }
  return absl::OkStatus();
}

absl::StatusOr<Batch> SampleTopology(const ResolvedJob& job,
                                     const Manifest& manifest,
                                     const TopologyRequest& request,
                                     const ResolvedSeeds& seeds,
                                     NeighborSource& source) {
  MILLRACE_RETURN_IF_ERROR(CheckTopologyInput(job, request, seeds));
  const DrawContext context = {.job_seed = job.spec.seed,
                               .epoch = request.epoch,
                               .batch = request.batch,
                               .direction = job.spec.direction,
                               .rule = RuleOf(job.spec),
                               .replace = job.spec.replace,
                               .edge_ids = request.edge_ids,
                               .feature_rows = request.feature_rows,
                               .within = job.spec.train_graph};
  TopologyBuilder builder(job, manifest, seeds);
  MILLRACE_RETURN_IF_ERROR(builder.AddSeeds());
  if (job.spec.method == SampleMethod::kWalk) {
    return SampleWalks(context, builder, source);
  }
  for (int hop = 0; hop < job.hops; ++hop) {
    MILLRACE_RETURN_IF_ERROR(job.spec.method == SampleMethod::kPpr
                                 ? AddPprHop(hop, context, builder, source)
                                 : AddHop(hop, context, builder, source));
  }
  if (job.spec.method == SampleMethod::kInduced) {
    MILLRACE_RETURN_IF_ERROR(InduceEdges(context, builder, source));
  }
  return builder.Finish(context);
}

}  // namespace millrace
