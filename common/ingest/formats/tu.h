// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Where the node features of a collection come from.
enum class TuFeatures {
  kDefault,     // kLabels if the collection has node labels, otherwise kOnes
  kOnes,        // a single 1 per node
  kDegree,      // one-hot in-degree in the imported graph
  kLabels,      // one-hot DS_node_labels: a feature for each value of a column
  kAttributes,  // DS_node_attributes, unchanged
};

// A collection of small graphs in the format of TU Dortmund (TUDataset; Morris
// et al. 2020): text files DS_A, DS_graph_indicator, DS_graph_labels (or, for
// regression, DS_graph_attributes), and optionally DS_node_labels,
// DS_node_attributes, DS_edge_labels, DS_edge_attributes, each .txt.gz or .txt.
// Nodes, graphs and lines are counted from 1.
struct TuInput {
  std::filesystem::path directory;
  TuFeatures features = TuFeatures::kDefault;
};

// Opens the collection as one graph with the node types `node` and `graph`
// and the relations `node__to__node` (the file's edges, with labels as types)
// and `node__in__graph` (edge v goes from node v to its graph, so the in-list
// of a graph contains its nodes). The labels of `graph` are 0 to C-1, in the
// ascending order of the file's values, or the file's attributes. `options`
// must be those that ImportGraph() will get. NOT_FOUND: no such folder or file.
// INVALID_ARGUMENT: several collections in one folder, a number of a node or
// graph that exceeds their count, an edge between two graphs (the message names
// file and line), or degree features for a graph whose edges are partly held
// out.
absl::StatusOr<RawGraph> OpenTu(const TuInput& input,
                                const ImportOptions& options = {});

}  // namespace millrace
