// SPDX-License-Identifier: Apache-2.0
// Code shared by the importers of other programs' partition folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ingest/import_options.h"
#include "common/ingest/raw_graph.h"
#include "common/table/restored_rows.h"
#include "common/table/stored_tensor.h"

namespace millrace {

struct PartitionFolderInput {
  std::filesystem::path directory;
  // The node type of the labels and splits beside the folder. Empty means the
  // only type, or the only one with as many nodes as there are labels.
  std::string type;
  RestoreOptions restore;
};

// Builds the graph that such a folder describes from the shares of its columns,
// which the importer finds. Its arguments must outlive it.
class PartitionFolder {
 public:
  PartitionFolder(const PartitionFolderInput& input,
                  const ImportOptions& options)
      : input_(input), options_(options) {}

  // Adds a node type. `owners` has the partition of each node.
  // INVALID_ARGUMENT: it is not one integer per node.
  absl::Status AddNodes(const std::string& name, StoredTensor owners,
                        const std::filesystem::path& owners_file);

  // Restores a column of a node type or relation to its original order (see
  // RestoreRows). Null if there are no shares.
  absl::StatusOr<std::shared_ptr<const RowSource>> Restore(
      const std::string& name, const char* kind, std::vector<RowShare> shares,
      int64_t rows) const;

  // Adds labels and splits from the folders that the scripts of PyG and GLT
  // make beside DIR = DS-partitions: DS-label/label.pt, and
  // DS-train-partitions/, DS-val-partitions/, DS-test-partitions/ with
  // partition0.pt and so on. If the splits are of edges, splits and labels are
  // left out, with a warning in the log.
  absl::Status AddLabelsAndSplits();

  RawGraph& graph() { return graph_; }
  const std::filesystem::path& directory() const { return input_.directory; }

 private:
  absl::StatusOr<TypeIndex> TypeOfLabels(int64_t labels) const;

  const PartitionFolderInput& input_;
  const ImportOptions& options_;
  RawGraph graph_;
};

}  // namespace millrace
