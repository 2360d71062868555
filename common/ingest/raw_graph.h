// SPDX-License-Identifier: Apache-2.0
// A graph as the user has it: where to read the columns of its node types,
// relations and splits. formats/ makes it from files, and ImportGraph() turns
// it into a dataset. Columns are shared, since several of a graph may be views
// of one file.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/schema.h"
#include "common/table/row_source.h"

namespace millrace {

// A node type; null columns are absent. All have `count` rows.
struct RawNodes {
  std::string name = {};
  int64_t count = 0;
  bool count_is_chosen = false;  // given by the user, not read from the input
  // Where the count comes from, for messages: "x.npy has 5 rows".
  std::string count_reason = {};
  std::shared_ptr<const RowSource> feature = nullptr;
  std::shared_ptr<const RowSource> label = nullptr;
  std::shared_ptr<const RowSource> time = nullptr;
  // If another program has partitioned the graph, the partition of each node.
  // Datasets do not have this column; see WriteOwners().
  std::shared_ptr<const RowSource> owner = nullptr;
};

// A relation; null columns are absent. All have one row per edge.
struct RawEdges {
  TypeIndex src = 0;
  std::string name = {};
  TypeIndex dst = 0;
  std::shared_ptr<const RowSource> endpoints = nullptr;  // (src, dst)
  std::shared_ptr<const RowSource> weight = nullptr;
  std::shared_ptr<const RowSource> time = nullptr;
  std::shared_ptr<const RowSource> type = nullptr;
  std::shared_ptr<const RowSource> feature = nullptr;
  int64_t declared_count = -1;   // -1 if the number of edges is not declared
  std::string declared_by = {};  // the file that declares it
};

// Seeds given by original ids, in any order, without duplicates.
struct RawSplit {
  TypeIndex type = 0;
  std::string name = {};
  std::shared_ptr<const RowSource> ids = nullptr;
};

// Seeds that are pairs of nodes, in order; null columns are absent. All have
// one row per pair.
struct RawEdgeSplit {
  size_t edges = 0;  // the relation's index in RawGraph::edges
  std::string name = {};
  std::shared_ptr<const RowSource> endpoints = nullptr;  // (src, dst)
  // If not -1, the pairs are the relation's edges from `first_edge` on.
  int64_t first_edge = -1;
  // If set, all other columns are null, and the seeds are the edges at these
  // positions in the relation's list.
  std::shared_ptr<const RowSource> ids = nullptr;
  std::shared_ptr<const RowSource> time = nullptr;
  std::shared_ptr<const RowSource> type = nullptr;
  std::shared_ptr<const RowSource> label = nullptr;
};

// Names that an importer has numbered from 0, and the file to keep them in.
// Datasets do not contain them; see WriteNames().
struct RawNames {
  std::string file = {};
  std::shared_ptr<const std::deque<std::string>> names = nullptr;
};

// Sources are shared because --add-reverse reads those of the relation that it
// reverses.
struct RawGraph {
  std::vector<RawNodes> nodes;
  std::vector<RawEdges> edges;
  std::vector<RawSplit> splits;
  std::vector<RawEdgeSplit> edge_splits;
  std::vector<RawNames> names;

  // "SRC__NAME__DST".
  std::string RelationName(const RawEdges& relation) const {
    return nodes[relation.src].name + "__" + relation.name + "__" +
           nodes[relation.dst].name;
  }
};

}  // namespace millrace
