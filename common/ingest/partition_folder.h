// SPDX-License-Identifier: Apache-2.0
// What the importers of other programs' partition folders share.
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
#include "common/ingest/restored_rows.h"
#include "common/ingest/stored_tensor.h"

namespace millrace {

struct PartitionFolderInput {
  std::filesystem::path directory;
  // Of labels and splits, which lie beside the folder. Empty: the only type,
  // or the only one with as many nodes as there are labels.
  std::string type;
  RestoreOptions restore;
};

// Finds out what such a folder describes; the shares of the columns come from
// the importer.
class PartitionFolder {
 public:
  PartitionFolder(const PartitionFolderInput& input,
                  const ImportOptions& options)
      : input_(input), options_(options) {}

  // A node type with as many nodes as `owners`, the partition of each, has
  // rows.
  absl::Status AddNodes(const std::string& name, StoredTensor owners,
                        const std::filesystem::path& owners_file);

  // Columns of node type or relation in their own order; null without shares.
  absl::StatusOr<std::shared_ptr<const RowSource>> Restore(
      const std::string& name, const char* kind, std::vector<RowShare> shares,
      int64_t rows) const;

  // Labels and splits in the folders that the scripts of PyG and GLT make
  // beside DIR = DS-partitions: DS-label/label.pt and DS-train-partitions/,
  // DS-val-partitions/, DS-test-partitions/ with partition0.pt, .. Splits of
  // edges are left out with a note, and the labels with them.
  absl::Status AddCompanions();

  RawGraph& graph() { return graph_; }
  const std::filesystem::path& directory() const { return input_.directory; }

 private:
  absl::StatusOr<TypeIndex> TypeOfCompanions(int64_t labels) const;

  const PartitionFolderInput& input_;
  const ImportOptions& options_;
  RawGraph graph_;
};

}  // namespace millrace
