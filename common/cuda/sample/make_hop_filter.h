// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cuda/sample/hop_filter.h"
#include "common/cuda/sample/hop_job.h"
#include "common/graph/schema.h"
#include "common/sample/excluded_edges.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"

namespace millrace::cuda {

inline ExcludedLists MakeExcludedLists(const ExcludedEdges& edges) {
  ExcludedLists lists;
  lists.timed = edges.timed;
  lists.owners.reserve(edges.by_node.size());
  for (const auto& [node, entries] : edges.by_node) {
    lists.owners.push_back(node);
  }
  std::sort(lists.owners.begin(), lists.owners.end());
  for (const uint64_t owner : lists.owners) {
    for (const ExcludedEdges::Entry& entry : edges.by_node.at(owner)) {
      lists.entries.push_back({entry.neighbor, entry.time});
    }
    lists.begins.push_back(lists.entries.size());
  }
  return lists;
}

// The same for lists of these nodes only.
inline ExcludedLists MakeExcludedLists(const ExcludedEdges& edges,
                                       std::span<const uint64_t> ids) {
  ExcludedEdges some{.timed = edges.timed, .by_node = {}};
  for (const uint64_t id : ids) {
    const auto found = edges.by_node.find(id);
    if (found != edges.by_node.end()) some.by_node.insert(*found);
  }
  return MakeExcludedLists(some);
}

// Adds to a batch of `job` what it draws from: all but the edges that the seeds
// exclude, and if `members`, by relation, is not empty, only lists' entries
// whose neighbour is a member.
inline void AddFilters(const ResolvedJob& job, const Schema& schema,
                       const ResolvedSeeds& seeds,
                       std::span<const uint64_t* const> members, HopJob& made) {
  for (size_t r = 0; r < members.size(); ++r) {
    made.relations[r].filter.members = members[r];
  }
  for (const auto& [relation, edges] : ExcludedBySeeds(job, schema, seeds)) {
    made.relations[relation].filter.excluded = MakeExcludedLists(edges);
  }
}

}  // namespace millrace::cuda
