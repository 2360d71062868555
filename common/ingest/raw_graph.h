// SPDX-License-Identifier: Apache-2.0
// A graph as the user has it: where the columns of its node types, relations
// and splits can be read. Importers of a format describe it; ImportGraph
// makes a dataset of it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/schema.h"
#include "common/ingest/row_source.h"

namespace millrace {

// A node type; null columns are absent. All have `count` rows.
struct RawNodes {
  std::string name = {};
  int64_t count = 0;
  bool count_is_chosen = false;  // by the user, not read from the input
  // What says so, for messages: "x.npy has 5 rows".
  std::string count_reason = {};
  std::shared_ptr<const RowSource> feature = nullptr;
  std::shared_ptr<const RowSource> label = nullptr;
  std::shared_ptr<const RowSource> time = nullptr;
  // Where another program had divided the graph: the partition of each node.
  // It is no column of datasets; see WriteOwners().
  std::shared_ptr<const RowSource> owner = nullptr;
};

// A relation; null columns are absent. All have one row an edge.
struct RawEdges {
  TypeIndex src = 0;
  std::string name = {};
  TypeIndex dst = 0;
  std::shared_ptr<const RowSource> endpoints = nullptr;  // (src, dst)
  std::shared_ptr<const RowSource> weight = nullptr;
  std::shared_ptr<const RowSource> time = nullptr;
  std::shared_ptr<const RowSource> type = nullptr;
  std::shared_ptr<const RowSource> feature = nullptr;
  int64_t declared_count = -1;   // -1: nobody says how many edges there are
  std::string declared_by = {};  // the file that does
};

// Seeds by original id, in any order, without duplicates.
struct RawSplit {
  TypeIndex type = 0;
  std::string name = {};
  std::shared_ptr<const RowSource> ids = nullptr;
};

// Pairs of nodes as seeds, in their order; null columns are absent. All have
// one row a pair.
struct RawEdgeSplit {
  size_t edges = 0;  // the relation's place in RawGraph::edges
  std::string name = {};
  std::shared_ptr<const RowSource> endpoints = nullptr;  // (src, dst)
  // The pairs are the relation's edges from `first_edge` on; -1: they are not.
  int64_t first_edge = -1;
  // Instead of all other columns: the seeds are the edges at these places in
  // the relation's list.
  std::shared_ptr<const RowSource> ids = nullptr;
  std::shared_ptr<const RowSource> time = nullptr;
  std::shared_ptr<const RowSource> type = nullptr;
  std::shared_ptr<const RowSource> label = nullptr;
};

// The names that an importer has numbered from 0, and the file that keeps
// them; they are no part of datasets. See WriteNames().
struct RawNames {
  std::string file = {};
  std::shared_ptr<const std::deque<std::string>> names = nullptr;
};

// Sources are shared: --add-reverse reads those of the relation it reverses.
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
