// SPDX-License-Identifier: Apache-2.0
// Lists and times computed directly from a user's edge list, without a store.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/schema.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {

constexpr int64_t kAnyTime = std::numeric_limits<int64_t>::min();

class BruteForce {
 public:
  BruteForce(const TestGraph& graph, Direction direction)
      : graph_(graph), in_(direction == Direction::kIn) {}

  const TestGraph& graph() const { return graph_; }
  const std::string& list_type(size_t relation) const {
    return in_ ? graph_.relations[relation].dst
               : graph_.relations[relation].src;
  }
  const std::string& neighbor_type(size_t relation) const {
    return in_ ? graph_.relations[relation].src
               : graph_.relations[relation].dst;
  }
  int64_t Owner(size_t relation, size_t edge) const {
    const auto& [src, dst] = graph_.relations[relation].edges[edge];
    return in_ ? dst : src;
  }
  int64_t Neighbor(size_t relation, size_t edge) const {
    const auto& [src, dst] = graph_.relations[relation].edges[edge];
    return in_ ? src : dst;
  }
  // The time of an edge if edges have times, else of its neighbour, else
  // kAnyTime.
  int64_t Time(size_t relation, size_t edge) const {
    if (!graph_.relations[relation].time.empty()) {
      return graph_.relations[relation].time[edge];
    }
    for (const TestType& type : graph_.types) {
      if (type.name == neighbor_type(relation) && !type.time.empty()) {
        return type.time[Neighbor(relation, edge)];
      }
    }
    return kAnyTime;
  }
  // The edges of a node's list that are no later than `time`, by (time, edge
  // id).
  std::vector<int64_t> List(size_t relation, int64_t owner,
                            int64_t time) const {
    std::vector<std::pair<int64_t, int64_t>> list;
    for (size_t e = 0; e < graph_.relations[relation].edges.size(); ++e) {
      if (Owner(relation, e) == owner && Time(relation, e) <= time) {
        list.emplace_back(Time(relation, e), static_cast<int64_t>(e));
      }
    }
    std::sort(list.begin(), list.end());
    std::vector<int64_t> edges;
    for (const auto& [at, edge] : list) edges.push_back(edge);
    return edges;
  }

 private:
  const TestGraph& graph_;
  const bool in_;
};

}  // namespace millrace::testing
