// SPDX-License-Identifier: Apache-2.0
// Small stores on disk made from graphs in memory, independently of the
// importers and the partitioner. A test must add ../support/store_builder.cc to
// its SOURCES and millrace::graph to its LINK.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/array.h"
#include "common/graph/edge_split_writer.h"

namespace millrace::testing {

// The columns of a node type by original id; absent arrays mean absent columns.
struct TestType {
  std::string name = "node";
  int64_t count = 0;
  Array feature = {};              // [count, d], any dtype
  Array label = {};                // [count] or [count, k]
  std::vector<int64_t> time = {};  // [count], or empty
};

// A relation in the user's order: edge i has edge id i.
struct TestRelation {
  std::string src = "node";
  std::string name = "to";
  std::string dst = "node";
  std::vector<std::pair<int64_t, int64_t>> edges = {};  // source, destination
  std::vector<float> weight = {};
  std::vector<int64_t> time = {};
  std::vector<int32_t> type = {};
  Array feature = {};  // [edges, d]
  bool in = true;
  bool out = true;
};

struct TestSplit {
  std::string type = "node";
  std::string name = "train";
  std::vector<int64_t> ids = {};  // original ids, ascending
};

struct TestGraph {
  std::vector<TestType> types;
  std::vector<TestRelation> relations;
  std::vector<TestSplit> splits;
  std::vector<EdgeSplitColumns> edge_splits = {};
};

// Writes `graph` as a dataset: one partition, in which ids equal original ids.
absl::Status BuildDataset(const TestGraph& graph,
                          const std::filesystem::path& target);

// Writes `graph` as a store of `parts` partitions, with hotness (a node's
// number of edges). assignment[type][original id] is a node's partition.
absl::Status BuildStore(const TestGraph& graph, int parts,
                        const std::vector<std::vector<int>>& assignment,
                        const std::filesystem::path& target,
                        bool neighbor_original_ids = true);

// Writes `graph` as a dataset if `parts` is 0, otherwise as a store in which
// SpreadAssignment() says where nodes are.
absl::Status WriteGraph(const TestGraph& graph, int parts,
                        const std::filesystem::path& target);

// assignment[type][v]: (v * 7 + type) mod parts, which mixes the types.
std::vector<std::vector<int>> SpreadAssignment(const TestGraph& graph,
                                               int parts);

// A [rows, dims] float32 array whose element (i, j) is i + j / 8.
Array RampFeature(int64_t rows, int64_t dims);

// One node type, 8 nodes, 12 edges (one twice, one self loop), features,
// labels, and splits train and test.
TestGraph SmallGraph();
// Two node types and three relations with every kind of column: weights,
// edge times, neighbours' times, edge types and edge features.
TestGraph RichGraph();

// An empty directory for this test; the call recreates it.
std::filesystem::path TestDirectory(const std::string& name);

}  // namespace millrace::testing
