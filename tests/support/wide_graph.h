// SPDX-License-Identifier: Apache-2.0
// A test that uses this must add store_builder.cc to its SOURCES.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/store_builder.h"

namespace millrace::testing {

// A ring of `nodes` nodes with `degree` in-edges each and wide features.
inline TestGraph WideGraph(int64_t nodes, int64_t degree, int64_t dims) {
  TestGraph graph;
  TestType type;
  type.count = nodes;
  type.feature = RampFeature(nodes, dims);
  type.label = Array::Adopt(std::vector<int64_t>(nodes, 1));
  graph.types = {type};
  TestRelation relation;
  TestSplit split;
  for (int64_t v = 0; v < nodes; ++v) {
    for (int64_t i = 1; i <= degree; ++i) {
      relation.edges.emplace_back((v + i * i) % nodes, v);
    }
    split.ids.push_back(v);
  }
  graph.relations = {relation};
  graph.splits = {split};
  return graph;
}

}  // namespace millrace::testing
