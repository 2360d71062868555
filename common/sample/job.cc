// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job.h"

#include <algorithm>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"

namespace millrace {
namespace {

constexpr int64_t kMaxBatchSize = int64_t{1} << 30;
constexpr int kMaxRelations = 1 << 16;

absl::Status CheckFanouts(const Fanouts& fanouts, std::string_view where) {
  if (fanouts.size() > kMaxHops) {
    return absl::InvalidArgumentError(StrCat("--fanouts ", where, ": ",
                                             fanouts.size(),
                                             " hops; the limit is ", kMaxHops));
  }
  for (const int32_t fanout : fanouts) {
    if (fanout < kAllNeighbors) {
      return absl::InvalidArgumentError(StrCat(
          "--fanouts ", where, ": ", fanout,
          " is not a fanout; use a number >= 0, or -1 for all neighbours"));
    }
  }
  return absl::OkStatus();
}

// Fills job.fanouts and job.hops.
absl::Status ResolveFanouts(const Schema& schema, ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  MILLRACE_RETURN_IF_ERROR(CheckFanouts(spec.fanouts, "for all relations"));
  job.fanouts.assign(schema.relations.size(), spec.fanouts);
  for (const auto& [name, fanouts] : spec.relation_fanouts) {
    MILLRACE_ASSIGN_OR_RETURN(const RelationIndex relation,
                              schema.FindRelation(name));
    MILLRACE_RETURN_IF_ERROR(CheckFanouts(fanouts, name));
    job.fanouts[relation] = fanouts;
  }
  for (const Fanouts& fanouts : job.fanouts) {
    job.hops = std::max(job.hops, static_cast<int>(fanouts.size()));
  }
  for (size_t relation = 0; relation < job.fanouts.size(); ++relation) {
    Fanouts& fanouts = job.fanouts[relation];
    if (fanouts.empty()) fanouts.assign(job.hops, 0);
    if (static_cast<int>(fanouts.size()) != job.hops) {
      return absl::InvalidArgumentError(StrCat(
          "--fanouts ", schema.RelationName(static_cast<int>(relation)), ": ",
          fanouts.size(), " hops, but another relation has ", job.hops,
          "; give every relation one number per hop (0: none)"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDirection(const Schema& schema, const ResolvedJob& job) {
  const Direction direction = job.spec.direction;
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    const Relation& relation = schema.relations[r];
    const bool stored =
        direction == Direction::kIn ? relation.has_in : relation.has_out;
    const bool sampled =
        std::any_of(job.fanouts[r].begin(), job.fanouts[r].end(),
                    [](int32_t fanout) { return fanout != 0; });
    if (sampled && !stored) {
      return absl::FailedPreconditionError(StrCat(
          "the store has no ", DirectionName(direction), "-lists of ",
          schema.RelationName(static_cast<int>(r)),
          "\nmake one that has: millrace partition DATASET --directions both "
          "..."));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TypeIndex> ResolveSeedType(const JobSpec& spec,
                                          const Schema& schema) {
  if (!spec.seed_type.empty()) return schema.FindType(spec.seed_type);
  if (schema.node_types.size() == 1) return 0;
  std::string names;
  for (const NodeType& type : schema.node_types) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", type.name);
  }
  return absl::InvalidArgumentError(
      StrCat("--type is needed: the graph has the node types ", names));
}

}  // namespace

absl::StatusOr<ResolvedJob> ResolveJob(const JobSpec& spec,
                                       const Manifest& manifest) {
  const Schema& schema = manifest.schema;
  if (spec.seed_kind != SeedKind::kNode) {
    return absl::UnimplementedError(
        "--seeds: only node seeds are supported by this version");
  }
  if (spec.batch_size < 1 || spec.batch_size > kMaxBatchSize) {
    return absl::InvalidArgumentError(
        StrCat("--batch-size ", spec.batch_size,
               " is out of range; the limits are 1 and ", kMaxBatchSize));
  }
  if (schema.relations.size() > kMaxRelations) {
    return absl::InvalidArgumentError(
        StrCat("the graph has ", schema.relations.size(),
               " relations; the limit is ", kMaxRelations));
  }
  ResolvedJob job;
  job.spec = spec;
  MILLRACE_ASSIGN_OR_RETURN(job.seed_type, ResolveSeedType(spec, schema));
  MILLRACE_RETURN_IF_ERROR(ResolveFanouts(schema, job));
  MILLRACE_RETURN_IF_ERROR(CheckDirection(schema, job));
  return job;
}

}  // namespace millrace
