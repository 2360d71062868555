// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// What the features of the nodes of a collection are made of.
enum class TuFeatures {
  kDefault,     // kLabels where the collection has node labels, else kOnes
  kOnes,        // the number 1
  kDegree,      // one-hot in-degree in the imported graph, 0 to the largest
  kLabels,      // one-hot DS_node_labels: one place for each value of a column
  kAttributes,  // DS_node_attributes as they stand
};

// A collection of small graphs in the format of TU Dortmund: text files
// DS_A, DS_graph_indicator, and optionally DS_graph_labels (or, for
// regression, DS_graph_attributes), DS_node_labels, DS_node_attributes,
// DS_edge_labels, DS_edge_attributes, each .txt.gz or .txt. Nodes, graphs and
// lines are counted from 1.
struct TuInput {
  std::filesystem::path directory;
  TuFeatures features = TuFeatures::kDefault;
};

// Describes the collection as one graph of the node types `node` and `graph`
// and the relations `node__to__node` (the file's edges; labels as types) and
// `node__in__graph` (edge v: from node v to its graph, so a graph's in-list
// is its nodes). The labels of `graph` are 0 to C-1, for the file's values in
// ascending order.
// `options` are those that ImportGraph() will have.
// NOT_FOUND: no such folder or file. INVALID_ARGUMENT: several collections in
// one folder, a node or graph beyond their counts, an edge between two graphs
// (names file and line), degrees of a graph that edges are held out of.
absl::StatusOr<RawGraph> DescribeTu(const TuInput& input,
                                    const ImportOptions& options = {});

}  // namespace millrace
