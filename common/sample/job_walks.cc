// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_walks.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"

namespace millrace {
namespace {

using Problem = FieldError::Problem;

// Fills job.metapath for walks.
absl::Status ResolveMetapath(const Schema& schema, ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  for (const std::string& name : spec.metapath) {
    MILLRACE_ASSIGN_OR_RETURN(const RelationIndex relation,
                              schema.FindRelation(name));
    job.metapath.push_back(relation);
  }
  if (job.metapath.empty() && schema.relations.size() == 1) {
    job.metapath.push_back(0);
  }
  if (job.metapath.empty()) {
    return InvalidField(
        {.problem = Problem::kMissing,
         .field = "metapath",
         .limit =
             StrCat("the graph has ", schema.relations.size(), " relations")});
  }
  TypeIndex at = job.seed_type;
  // For edge seeds, walks may start at either end.
  const RelationIndex first = job.metapath[0];
  if (job.seed_relation >= 0 &&
      ListOwnerType(schema.relations[first], spec.direction) ==
          schema.relations[job.seed_relation].src) {
    at = schema.relations[job.seed_relation].src;
  }
  for (int step = 0; step < spec.walk_length; ++step) {
    const RelationIndex r = job.metapath[step % job.metapath.size()];
    const Relation& relation = schema.relations[r];
    if (ListOwnerType(relation, spec.direction) != at) {
      return InvalidField(
          {.field = "metapath",
           .limit = StrCat("step ", step, " follows ", schema.RelationName(r),
                           ", but the walk is at a node of type ",
                           schema.node_types[at].name)});
    }
    at = NeighborType(relation, spec.direction);
  }
  return absl::OkStatus();
}

// Checks the total number of steps of one node's walks.
absl::Status CheckWalkCount(const JobSpec& spec) {
  const int64_t most = kMaxWalkSteps / spec.walk_length;
  if (spec.walks >= 1 && spec.walks <= most) return absl::OkStatus();
  return InvalidField(
      {.problem = Problem::kOutOfRange,
       .field = "walks",
       .value = StrCat(spec.walks),
       .limit = StrCat("1 to ", most, " walks of ", spec.walk_length,
                       " steps, ", kMaxWalkSteps, " steps in all")});
}

// Checks that the metapath is a single relation within one node type, as
// `field` requires.
absl::Status CheckOneRelation(const Schema& schema, const ResolvedJob& job,
                              std::string_view field, std::string_view value) {
  const Relation& only = schema.relations[job.metapath[0]];
  if (job.metapath.size() == 1 && only.src == only.dst) {
    return absl::OkStatus();
  }
  return InvalidField({.field = std::string(field),
                       .value = std::string(value),
                       .limit = "needs a metapath of one relation that joins a "
                                "node type to itself"});
}

absl::Status ResolveWalkSteps(const Schema& schema, ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  // Steps play the role that hops have in other methods.
  if (spec.walk_length > kMaxHops) {
    return InvalidField(
        {.problem = Problem::kOutOfRange,
         .field = "walk_length",
         .value = StrCat(spec.walk_length),
         .limit = StrCat("1 to ", kMaxHops, " for method walk")});
  }
  if (IsBiased(spec)) {
    const bool p = spec.walk_p != 1;
    MILLRACE_RETURN_IF_ERROR(
        CheckOneRelation(schema, job, p ? "walk_p" : "walk_q",
                         StrCat(p ? spec.walk_p : spec.walk_q)));
  }
  job.hops = spec.walk_length;
  job.fanouts.assign(schema.relations.size(), Fanouts(job.hops, 0));
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveWalks(const Schema& schema, ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  const bool walk = spec.method == SampleMethod::kWalk;
  if (!walk && spec.method != SampleMethod::kPpr) return absl::OkStatus();
  MILLRACE_RETURN_IF_ERROR(CheckWalkCount(spec));
  MILLRACE_RETURN_IF_ERROR(ResolveMetapath(schema, job));
  if (walk) return ResolveWalkSteps(schema, job);
  // PPR keeps the fanouts of its one relation.
  MILLRACE_RETURN_IF_ERROR(CheckOneRelation(schema, job, "method", "ppr"));
  for (size_t r = 0; r < job.fanouts.size(); ++r) {
    if (static_cast<RelationIndex>(r) == job.metapath[0]) continue;
    job.fanouts[r].assign(job.hops, 0);
  }
  return absl::OkStatus();
}

}  // namespace millrace
