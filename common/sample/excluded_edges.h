// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"

namespace millrace {

// Edges of one relation that its lists are read without, by the node in whose
// list they are; docs/determinism.md section 6.
struct ExcludedEdges {
  struct Entry {
    uint64_t neighbor;  // id
    int64_t time;       // 0 unless `timed`
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  // Whether only entries of the same time are meant.
  bool timed = false;
  absl::flat_hash_map<uint64_t, std::vector<Entry>> by_node;

  void Add(uint64_t node, uint64_t neighbor, int64_t time) {
    by_node[node].push_back({neighbor, time});
  }
  // Sorts the entries of each node and drops repeated ones. Must be called
  // after the last Add(), before lists are read. A node may have as many
  // entries as a batch has seeds.
  void Sort();

  // Whether `entry` is among `entries`, which must be sorted.
  static bool Contains(std::span<const Entry> entries, Entry entry) {
    return std::binary_search(entries.begin(), entries.end(), entry);
  }
};

// Returns what the seeds of a batch exclude, by relation. Relations without
// excluded edges are missing.
std::map<RelationIndex, ExcludedEdges> ExcludedBySeeds(
    const ResolvedJob& job, const Schema& schema, const ResolvedSeeds& seeds);

}  // namespace millrace
