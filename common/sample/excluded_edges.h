// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"

namespace millrace {

// Edges of one relation that its lists are read without, by the node whose
// list they stand in; docs/determinism.md section 6.
struct ExcludedEdges {
  struct Entry {
    uint64_t neighbor;  // id
    int64_t time;       // read if `timed`
  };
  // Whether only entries of the same time are meant.
  bool timed = false;
  absl::flat_hash_map<uint64_t, std::vector<Entry>> by_node;

  void Add(uint64_t node, uint64_t neighbor, int64_t time) {
    by_node[node].push_back({neighbor, time});
  }
};

// What the seeds of a batch exclude, per relation; relations without
// exclusions are not there.
std::map<RelationIndex, ExcludedEdges> ExcludedBySeeds(
    const ResolvedJob& job, const Schema& schema, const ResolvedSeeds& seeds);

}  // namespace millrace
