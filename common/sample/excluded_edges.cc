// SPDX-License-Identifier: Apache-2.0
#include "common/sample/excluded_edges.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "common/base/strings.h"
#include "common/sample/batch.h"

namespace millrace {
namespace {

constexpr std::string_view kReversePrefix = "rev_";

std::string ReverseName(const std::string& name) {
  return name.starts_with(kReversePrefix) ? name.substr(kReversePrefix.size())
                                          : StrCat(kReversePrefix, name);
}

// Whether `other` holds the reverses of the edges of `relation`.
bool IsReverse(const Relation& relation, const Relation& other) {
  return other.src == relation.dst && other.dst == relation.src &&
         other.name == ReverseName(relation.name);
}

// Excludes the edges src -> dst, or dst -> src, of a relation.
void ExcludeAll(const ResolvedJob& job, const Relation& relation, bool reversed,
                const ResolvedSeeds& seeds, ExcludedEdges& excluded) {
  excluded.timed =
      relation.time == ListTime::kEdge && seeds.times.size() == seeds.size();
  for (size_t i = 0; i < seeds.size(); ++i) {
    const uint64_t src = reversed ? seeds.dst.ids[i] : seeds.ids[i];
    const uint64_t dst = reversed ? seeds.ids[i] : seeds.dst.ids[i];
    const int64_t time = excluded.timed ? seeds.times[i] : 0;
    if (job.spec.direction == Direction::kIn) {
      excluded.Add(dst, src, time);
    } else {
      excluded.Add(src, dst, time);
    }
  }
}

// Excludes the reverses of the seeds' edges, in every relation that has them.
void ExcludeReverses(const ResolvedJob& job, const Schema& schema,
                     const ResolvedSeeds& seeds,
                     std::map<RelationIndex, ExcludedEdges>& excluded) {
  const Relation& relation = schema.relations[job.seed_relation];
  if (relation.src == relation.dst) {
    ExcludeAll(job, relation, true, seeds, excluded[job.seed_relation]);
  }
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    if (IsReverse(relation, schema.relations[r])) {
      ExcludeAll(job, schema.relations[r], true, seeds,
                 excluded[static_cast<RelationIndex>(r)]);
    }
  }
}

}  // namespace

void ExcludedEdges::Sort() {
  for (auto& [node, entries] : by_node) {
    std::sort(entries.begin(), entries.end());
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  }
}

std::map<RelationIndex, ExcludedEdges> ExcludedBySeeds(
    const ResolvedJob& job, const Schema& schema, const ResolvedSeeds& seeds) {
  std::map<RelationIndex, ExcludedEdges> excluded;
  if (job.spec.exclude == ExcludeSeedEdges::kNone || seeds.ids.empty()) {
    return excluded;
  }
  const Relation& relation = schema.relations[job.seed_relation];
  ExcludeAll(job, relation, false, seeds, excluded[job.seed_relation]);
  if (job.spec.exclude != ExcludeSeedEdges::kSelf) {
    ExcludeReverses(job, schema, seeds, excluded);
  }
  for (auto& [index, edges] : excluded) edges.Sort();
  return excluded;
}

}  // namespace millrace
