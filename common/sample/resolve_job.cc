// SPDX-License-Identifier: Apache-2.0
#include "common/sample/resolve_job.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/draw_rule.h"
#include "common/sample/job_rules.h"
#include "common/sample/job_walks.h"

namespace millrace {
namespace {

constexpr int kMaxRelations = 1 << 16;

using Problem = FieldError::Problem;

// `relation` is empty for the fanouts of all relations.
absl::Status CheckFanouts(const Fanouts& fanouts, std::string_view relation) {
  const auto value = [&](std::string_view text) {
    return relation.empty() ? std::string(text) : StrCat(relation, "=", text);
  };
  if (fanouts.size() > kMaxHops) {
    return InvalidField(
        {.field = "fanouts",
         .value = value(absl::StrJoin(fanouts, ",")),
         .limit = StrCat(fanouts.size(), " hops; the limit is ", kMaxHops)});
  }
  for (const int32_t fanout : fanouts) {
    if (fanout >= kAllNeighbors && fanout <= kMaxFanout) continue;
    return InvalidField(
        {.problem = Problem::kOutOfRange,
         .field = "fanouts",
         .value = value(StrCat(fanout)),
         .limit = StrCat("0 to ", kMaxFanout, ", or -1 for all neighbours")});
  }
  return absl::OkStatus();
}

// Fills job.fanouts and job.hops.
absl::Status ResolveFanouts(const Schema& schema, ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  MILLRACE_RETURN_IF_ERROR(CheckFanouts(spec.fanouts, ""));
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
      return InvalidField(
          {.field = "fanouts",
           .value = StrCat(schema.RelationName(static_cast<int>(relation)), "=",
                           absl::StrJoin(fanouts, ",")),
           .limit =
               StrCat(fanouts.size(), " hops, but another relation has ",
                      job.hops, "; each has one number per hop (0: none)")});
    }
  }
  return absl::OkStatus();
}

// Returns the relations whose lists the job reads.
std::vector<RelationIndex> ReadRelations(const Schema& schema,
                                         const ResolvedJob& job) {
  std::vector<RelationIndex> read;
  const SampleMethod method = job.spec.method;
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    const auto relation = static_cast<RelationIndex>(r);
    const bool reads =
        method == SampleMethod::kInduced ||
        std::any_of(job.fanouts[r].begin(), job.fanouts[r].end(),
                    [](int32_t fanout) { return fanout != 0; }) ||
        std::find(job.metapath.begin(), job.metapath.end(), relation) !=
            job.metapath.end();
    if (reads) read.push_back(relation);
  }
  return read;
}

absl::Status CheckDirection(const Schema& schema, const ResolvedJob& job) {
  const Direction direction = job.spec.direction;
  for (const RelationIndex r : ReadRelations(schema, job)) {
    const Relation& relation = schema.relations[r];
    if (direction == Direction::kIn ? relation.has_in : relation.has_out) {
      continue;
    }
    return FieldStatus(
        absl::StatusCode::kFailedPrecondition,
        {.field = "direction",
         .value = std::string(DirectionName(direction)),
         .limit = StrCat("the store has no ", DirectionName(direction),
                         "-lists of ", schema.RelationName(r))});
  }
  return absl::OkStatus();
}

// Whether neighbours in any of the relations are of the type.
bool Reaches(const Schema& schema, const ResolvedJob& job,
             const std::vector<RelationIndex>& relations, TypeIndex type) {
  return std::any_of(relations.begin(), relations.end(), [&](RelationIndex r) {
    return NeighborType(schema.relations[r], job.spec.direction) == type;
  });
}

// The error for a field that needs something which the store does not have.
absl::Status MissingInStore(std::string_view field, std::string_view value,
                            const std::string& what, Reason reason = {}) {
  return FieldStatus(
      absl::StatusCode::kFailedPrecondition,
      {.field = std::string(field), .value = std::string(value), .limit = what},
      reason);
}

absl::Status CheckWeights(const Schema& schema, const ResolvedJob& job) {
  const DrawRuleInfo& rule = InfoOf(RuleOf(job.spec));
  if (!rule.reads_weight_sums) return absl::OkStatus();
  for (const RelationIndex r : ReadRelations(schema, job)) {
    if (schema.relations[r].has_weight) continue;
    return MissingInStore(
        rule.choice.field, rule.choice.value,
        StrCat("the edges of ", schema.RelationName(r), " have no weights"),
        Reason{"no_weights"});
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(const Schema& schema, const ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  if (spec.temporal == TemporalStrategy::kNone) return absl::OkStatus();
  const std::vector<RelationIndex> read = ReadRelations(schema, job);
  const bool timed =
      std::any_of(read.begin(), read.end(), [&](RelationIndex r) {
        return ListsHaveTime(schema, r, spec.direction);
      });
  if (timed || read.empty()) return absl::OkStatus();
  return MissingInStore(
      "temporal", "",
      "none of the edges and nodes that are sampled have times");
}

absl::Status CheckNeighborIds(const Manifest& manifest, const JobSpec& spec) {
  const DrawRuleInfo& rule = InfoOf(RuleOf(spec));
  if (!rule.reads_original_ids || manifest.draws_by_neighbor()) {
    return absl::OkStatus();
  }
  return MissingInStore(rule.choice.field, rule.choice.value,
                        "the store has no original ids of neighbours",
                        Reason{"no_neighbor_ids"});
}

absl::Status CheckNegatives(const Schema& schema, const ResolvedJob& job) {
  constexpr double kMaxNegatives = 1 << 20;
  const Negatives& negatives = job.spec.negatives;
  if (negatives.mode == NegativeMode::kNone ||
      negatives.mode == NegativeMode::kInBatch) {
    return absl::OkStatus();
  }
  const bool whole = negatives.amount == std::floor(negatives.amount);
  if (!(negatives.amount > 0 && negatives.amount <= kMaxNegatives) ||
      (!whole && negatives.mode != NegativeMode::kBinary)) {
    return InvalidField(
        {.problem = Problem::kOutOfRange,
         .field = "negatives",
         .value = absl::StrFormat("%.10g", negatives.amount),
         .limit = absl::StrFormat("a whole number from 1 to %.10g (binary: a "
                                  "number above 0)",
                                  kMaxNegatives)});
  }
  if (negatives.mode == NegativeMode::kShared) return absl::OkStatus();
  const Relation& relation = schema.relations[job.seed_relation];
  if (relation.has_in || relation.has_out) return absl::OkStatus();
  return MissingInStore(
      "negatives", "",
      StrCat("the store has no lists of ",
             schema.RelationName(job.seed_relation), " to check them in"));
}

absl::Status ResolveSeedRelation(const Schema& schema, ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  if (spec.seed_type.empty()) {
    if (schema.relations.size() != 1) {
      return InvalidField(
          {.problem = Problem::kMissing,
           .field = "seed_type",
           .limit = StrCat("the graph has ", schema.relations.size(),
                           " relations")});
    }
    job.seed_relation = 0;
  } else {
    MILLRACE_ASSIGN_OR_RETURN(job.seed_relation,
                              schema.FindRelation(spec.seed_type));
  }
  job.seed_type = schema.relations[job.seed_relation].dst;
  return absl::OkStatus();
}

// Sets the fanouts for graph seeds: first to the nodes of the graphs, then to
// the edges among them.
absl::Status ResolveGraphs(const Schema& schema, ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  MILLRACE_ASSIGN_OR_RETURN(
      job.seed_type,
      schema.FindType(spec.seed_type.empty() ? "graph" : spec.seed_type));
  job.hops = 2;
  bool any = false;
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    const bool member = schema.relations[r].dst == job.seed_type;
    any = any || member;
    job.fanouts[r] =
        member ? Fanouts{kAllNeighbors, 0} : Fanouts{0, kAllNeighbors};
  }
  if (any) return absl::OkStatus();
  return InvalidField(
      {.field = "seed_kind",
       .value = "graph",
       .limit = StrCat("no relation says which nodes belong to a node of type ",
                       schema.node_types[job.seed_type].name)});
}

// Checks that a sampled relation leads to a node type that has the split;
// otherwise the job would sample the whole graph.
absl::Status CheckTrainGraph(const Manifest& manifest, const ResolvedJob& job) {
  const JobSpec& spec = job.spec;
  if (spec.train_graph.empty()) return absl::OkStatus();
  std::set<std::string> names;
  std::vector<std::string> types;  // names of those that have the split
  const std::vector<RelationIndex> read = ReadRelations(manifest.schema, job);
  bool reached = read.empty();  // then nothing is sampled at all
  for (const SplitInfo& split : manifest.splits) {
    names.insert(split.name);
    if (split.name != spec.train_graph) continue;
    MILLRACE_RETURN_IF_ERROR(
        manifest.FindSplit(split.type, split.name).status());
    types.push_back(manifest.schema.node_types[split.type].name);
    reached |= Reaches(manifest.schema, job, read, split.type);
  }
  if (types.empty()) {
    return FieldStatus(
        absl::StatusCode::kNotFound,
        {.field = "train_graph",
         .value = StrCat("induced:", spec.train_graph),
         .limit = StrCat("no node type has this split; ",
                         names.empty() ? "there are no node splits"
                                       : StrCat("the node splits are ",
                                                absl::StrJoin(names, ", ")))});
  }
  if (reached) return absl::OkStatus();
  return InvalidField(
      {.field = "train_graph",
       .value = StrCat("induced:", spec.train_graph),
       .limit = StrCat("no relation that is sampled leads to a node type with "
                       "this split (",
                       absl::StrJoin(types, ", "), ")")});
}

absl::StatusOr<TypeIndex> ResolveSeedType(const JobSpec& spec,
                                          const Schema& schema) {
  if (!spec.seed_type.empty()) return schema.FindType(spec.seed_type);
  if (schema.node_types.size() == 1) return 0;
  std::string names;
  for (const NodeType& type : schema.node_types) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", type.name);
  }
  return InvalidField(
      {.problem = Problem::kMissing,
       .field = "seed_type",
       .limit = StrCat("the graph has the node types ", names)});
}

}  // namespace

absl::StatusOr<ResolvedJob> ResolveJob(const JobSpec& spec,
                                       const Manifest& manifest) {
  const Schema& schema = manifest.schema;
  MILLRACE_RETURN_IF_ERROR(CheckJobOptions(spec));
  if (schema.relations.size() > kMaxRelations) {
    return absl::InvalidArgumentError(
        StrCat("the graph has ", schema.relations.size(),
               " relations; the limit is ", kMaxRelations));
  }
  ResolvedJob job;
  job.spec = spec;
  MILLRACE_RETURN_IF_ERROR(ResolveFanouts(schema, job));
  switch (spec.seed_kind) {
    case SeedKind::kNode: {
      MILLRACE_ASSIGN_OR_RETURN(job.seed_type, ResolveSeedType(spec, schema));
      break;
    }
    case SeedKind::kEdge:
      MILLRACE_RETURN_IF_ERROR(ResolveSeedRelation(schema, job));
      break;
    case SeedKind::kGraph:
      MILLRACE_RETURN_IF_ERROR(ResolveGraphs(schema, job));
      break;
  }
  MILLRACE_RETURN_IF_ERROR(CheckNegatives(schema, job));
  MILLRACE_RETURN_IF_ERROR(ResolveWalks(schema, job));
  MILLRACE_RETURN_IF_ERROR(CheckDirection(schema, job));
  MILLRACE_RETURN_IF_ERROR(CheckWeights(schema, job));
  MILLRACE_RETURN_IF_ERROR(CheckTimes(schema, job));
  MILLRACE_RETURN_IF_ERROR(CheckNeighborIds(manifest, job.spec));
  MILLRACE_RETURN_IF_ERROR(CheckTrainGraph(manifest, job));
  if (spec.temporal != TemporalStrategy::kNone) job.spec.disjoint = true;
  return job;
}

absl::Status CheckColumns(const Columns& columns, const Schema& schema) {
  const bool any_edge_feature = std::any_of(
      schema.relations.begin(), schema.relations.end(),
      [](const Relation& relation) { return relation.feature.present(); });
  if (!columns.edge_features || any_edge_feature) return absl::OkStatus();
  return MissingInStore("edge_features", "",
                        "no relation of the graph has features");
}

}  // namespace millrace
