// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/resolve_seeds.h"

#include <string>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/graph/damaged_file.h"

namespace millrace {

absl::StatusOr<uint64_t> ReadLookup(const Store& store, TypeIndex type,
                                    int part, uint64_t at) {
  const auto id =
      static_cast<uint64_t>(store.partition(part)->nodes[type].lookup.IntegerAt(
          static_cast<int64_t>(at)));
  const uint64_t count = store.book(type).node_count();
  if (id < count) return id;
  return DamagedFile(store,
                     LookupPath(part, store.schema().node_types[type].name),
                     StrCat("is damaged: index ", at, " is ", id,
                            ", but there are ", count, " nodes"));
}

absl::StatusOr<std::vector<uint64_t>> ResolveIds(
    const Store& store, TypeIndex type, std::span<const int64_t> original_ids) {
  const PartitionBook& book = store.book(type);
  const uint64_t width = book.lookup_width();
  std::vector<uint64_t> ids;
  ids.reserve(original_ids.size());
  for (size_t i = 0; i < original_ids.size(); ++i) {
    const auto original = static_cast<uint64_t>(original_ids[i]);
    if (original >= book.node_count()) {
      return absl::InvalidArgumentError(StrCat(
          "seed ", original_ids[i], " at position ", i,
          " is out of range; node type ", store.schema().node_types[type].name,
          " has ", book.node_count(), " nodes"));
    }
    const int part = static_cast<int>(original / width);
    if (store.partition(part) == nullptr) {
      return absl::FailedPreconditionError(
          StrCat("partition ", part, " is not mapped in this process"));
    }
    MILLRACE_ASSIGN_OR_RETURN(ids.emplace_back(),
                              ReadLookup(store, type, part, original % width));
  }
  return ids;
}

absl::Status CheckExplicitSeeds(const ResolvedJob& job,
                                const ExplicitSeeds& list) {
  const size_t n = list.size();
  const auto check = [n](size_t rows, const char* what) -> absl::Status {
    if (rows == 0 || rows == n) return absl::OkStatus();
    return absl::InvalidArgumentError(
        StrCat(rows, " ", what, " for ", n, " seeds\ngive one for each"));
  };
  MILLRACE_RETURN_IF_ERROR(check(list.times.size(), "times"));
  if (job.spec.seed_kind != SeedKind::kEdge) {
    if (!list.times.empty() && job.spec.temporal == TemporalStrategy::kNone) {
      return InvalidField(
          {.problem = FieldError::Problem::kMissing,
           .field = "temporal",
           .limit = "the seeds have times, but the job is not temporal"});
    }
    if (list.dst.empty()) return absl::OkStatus();
    return InvalidField({.problem = FieldError::Problem::kMissing,
                         .field = "seed_kind",
                         .value = "edge",
                         .limit = "the seeds are pairs of nodes"});
  }
  if (list.dst.size() != n) {
    return absl::InvalidArgumentError(StrCat("edge seeds: ", n, " sources and ",
                                             list.dst.size(),
                                             " destinations\ngive pairs"));
  }
  MILLRACE_RETURN_IF_ERROR(check(list.edge_types.size(), "edge types"));
  MILLRACE_RETURN_IF_ERROR(
      check(static_cast<size_t>(list.labels.rows()), "labels"));
  if (n == 0 || list.negatives.size() % n == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat(list.negatives.size(), " negatives for ", n,
             " seeds\ngive the same number for each"));
}

absl::StatusOr<ResolvedSeeds> ResolveSeeds(const ResolvedJob& job,
                                           const Schema& schema,
                                           const ExplicitSeeds& list,
                                           EdgeDirectory& directory) {
  MILLRACE_RETURN_IF_ERROR(CheckExplicitSeeds(job, list));
  const auto resolve = [&](TypeIndex type, const std::vector<int64_t>& ids,
                           ResolvedNodes& nodes) -> absl::Status {
    nodes.original_ids = ids;
    MILLRACE_ASSIGN_OR_RETURN(nodes.ids, directory.Resolve(type, ids));
    return absl::OkStatus();
  };
  ResolvedSeeds seeds;
  seeds.times = list.times;
  if (job.spec.seed_kind != SeedKind::kEdge) {
    MILLRACE_RETURN_IF_ERROR(resolve(job.seed_type, list.ids, seeds));
    return seeds;
  }
  const Relation& relation = schema.relations[job.seed_relation];
  MILLRACE_RETURN_IF_ERROR(resolve(relation.src, list.ids, seeds));
  MILLRACE_RETURN_IF_ERROR(resolve(relation.dst, list.dst, seeds.dst));
  MILLRACE_RETURN_IF_ERROR(
      resolve(relation.dst, list.negatives, seeds.negative_dst));
  seeds.label = list.labels;
  seeds.edge_types = list.edge_types;
  return seeds;
}

}  // namespace millrace
