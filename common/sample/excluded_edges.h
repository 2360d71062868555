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

// Edges that are skipped when one relation's lists are read, keyed by the node
// that owns the list; docs/determinism.md, section 6.
struct ExcludedEdges {
  struct Entry {
    uint64_t neighbor;  // id
    int64_t time;       // 0 unless `timed`
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  // Whether only entries with the same time are excluded.
  bool timed = false;
  absl::flat_hash_map<uint64_t, std::vector<Entry>> by_node;

  void Add(uint64_t node, uint64_t neighbor, int64_t time) {
    by_node[node].push_back({neighbor, time});
  }
  // Sorts the entries of each node and removes duplicates. Must be called after
  // the last Add() and before lists are read. A node may have as many entries
  // as the batch has seeds.
  void Sort();

  // Whether `entries`, which must be sorted, contains `entry`.
  static bool Contains(std::span<const Entry> entries, Entry entry) {
    return std::binary_search(entries.begin(), entries.end(), entry);
  }
};

// The edges that the seeds of a batch exclude, by relation. Relations without
// excluded edges are left out.
std::map<RelationIndex, ExcludedEdges> ExcludedBySeeds(
    const ResolvedJob& job, const Schema& schema, const ResolvedSeeds& seeds);

}  // namespace millrace
