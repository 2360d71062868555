// SPDX-License-Identifier: Apache-2.0
// Options that all importers share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace {

enum class SelfLoops { kKeep, kAdd, kRemove };

// kRow: PyG's NormalizeFeatures: the smallest value of the whole matrix is
// subtracted, then each row is divided by its sum (by 1 if that is larger).
// kStandard: each column gets mean 0 and population standard deviation 1; a
// constant column becomes 0.
enum class Normalization { kNone, kRow, kStandard };

// How --edge-split-fractions orders the edges that it divides.
// kRandom: by the keyed hash of their pair of nodes. The edges of valid and
// test, and all reverses of them, are no edges of the graph.
// kTime: by their times. All edges are in the graph; only temporal jobs do
// not see what comes after their seeds.
enum class EdgeSplitBy { kRandom, kTime };

struct ImportOptions {
  // After the user's E edges of every relation inside one node type come
  // their reverses: the reverse of edge i has edge_id E + i and i's weight,
  // time, type and features. Self loops have no reverse.
  bool undirected = false;
  // The same as a relation DST__rev_NAME__SRC (edge_id i) behind the user's
  // relations. Reverse relations are not made undirected again.
  bool add_reverse = false;
  // Of equal (source, destination) pairs only the lowest edge_id stays.
  // Applied after the two above.
  bool coalesce = false;
  // kAdd: a node of a relation inside one node type that has no self loop
  // gets one, with edge_id B + node, weight 1, time 0, type 0 and zero
  // features; B is E, or 2 E with `undirected`.
  SelfLoops self_loops = SelfLoops::kKeep;
  Normalization normalize_features = Normalization::kNone;
  // Empty, or the shares of train, valid and test among the labelled nodes of
  // every node type with labels: each in [0, 1], together at most 1.
  std::vector<double> split_fractions;
  // 0, or the number K >= 3 of folds for cross validation: every node type
  // with labels gets the splits train0, valid0, test0, .. up to K-1. testI is
  // fold I, validI the fold after it (cyclically), trainI the rest.
  int folds = 0;
  uint64_t split_seed = 1;
  // Empty, or the shares of train, valid and test among the edges of
  // `edge_split_type` (SRC__NAME__DST, empty: the only relation); DivideEdges()
  // says more. The rest is in the graph, but in no split.
  std::vector<double> edge_split_fractions;
  EdgeSplitBy edge_split_by = EdgeSplitBy::kRandom;
  std::string edge_split_type;
  // Bytes for edges in memory; the rest waits in files beside the dataset.
  uint64_t memory_bytes = uint64_t{1} << 30;

  // Splits are made here; those of the input are left out.
  bool makes_splits() const { return !split_fractions.empty() || folds != 0; }
};

}  // namespace millrace
