// SPDX-License-Identifier: Apache-2.0
// Options that all importers share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

enum class SelfLoops { kKeep, kAdd, kRemove };

// kRow: the smallest value of the whole matrix is subtracted, then each row is
// divided by its sum (or by 1 if that is larger), as PyG's NormalizeFeatures
// does.
// kStandard: each column gets mean 0 and population standard deviation 1; a
// constant column becomes 0.
enum class Normalization { kNone, kRow, kStandard };

// How --edge-split-fractions orders the edges that it divides.
// kRandom: by a keyed hash of the pair of nodes. The edges of valid and test,
// and all their reverses, are left out of the graph.
// kTime: by their times. All edges are in the graph; only temporal jobs ignore
// those that are later than their seeds.
enum class EdgeSplitBy { kRandom, kTime };

struct ImportOptions {
  // Appends reverses to the user's E edges of every relation within one node
  // type: the reverse of edge i has edge_id E + i and the weight, time, type
  // and features of i. Self loops get no reverse.
  bool undirected = false;
  // Adds the reverse of each relation as a relation DST__rev_NAME__SRC, with
  // edge_id i, after the user's relations. `undirected` does not apply to
  // reverse relations.
  bool add_reverse = false;
  // Keeps only the edge with the lowest edge_id for each (source, destination).
  // Applied after the two options above.
  bool coalesce = false;
  // kAdd: in every relation within one node type, each node without a self loop
  // gets one, with edge_id B + node, weight 1, time 0, type 0 and zero
  // features, where B is E, or 2 E with `undirected`.
  SelfLoops self_loops = SelfLoops::kKeep;
  Normalization normalize_features = Normalization::kNone;
  // Empty, or the shares of train, valid and test among the labelled nodes of
  // every node type with labels: each in [0, 1], and at most 1 in total.
  std::vector<double> split_fractions;
  // 0, or the number of folds K >= 3 for cross validation: every node type with
  // labels gets the splits train0, valid0, test0, .. up to K-1. testI is fold
  // I, validI the next fold (cyclically), and trainI the rest.
  int folds = 0;
  uint64_t split_seed = 1;
  // Empty, or the shares of train, valid and test among the edges of
  // `edge_split_type` (SRC__NAME__DST; empty means the only relation); see
  // DivideEdges(). The remaining edges are in the graph, but in no split.
  std::vector<double> edge_split_fractions;
  EdgeSplitBy edge_split_by = EdgeSplitBy::kRandom;
  std::string edge_split_type;
  // Memory for buffered edges; the rest is kept in files beside the dataset.
  uint64_t memory_bytes = uint64_t{1} << 30;

  // Whether the import makes the splits itself; those of the input are then
  // ignored.
  bool makes_splits() const { return !split_fractions.empty() || folds != 0; }
};

}  // namespace millrace
