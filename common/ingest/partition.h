// SPDX-License-Identifier: Apache-2.0
// From a dataset to a store of partitions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/dtype.h"
#include "common/ingest/partition_lists.h"
#include "common/sample/job.h"

namespace millrace {

enum class PartitionMethod { kMetis, kLdg, kRandom, kHash, kGiven };
enum class HotnessMethod { kDegree, kPresample };
enum class StoredDirections { kIn, kOut, kBoth };

// "metis", "ldg", ...; "degree", "presample".
std::string_view PartitionMethodName(PartitionMethod method);
std::string_view HotnessMethodName(HotnessMethod method);

struct PartitionOptions {
  int parts = 1;  // 1 to kMaxParts, at most as many as nodes (of all types)
  PartitionMethod method = PartitionMethod::kMetis;
  // kGiven: .npy files by node type.
  std::map<std::string, std::filesystem::path> assignment;
  uint64_t seed = 1;
  StoredDirections directions = StoredDirections::kIn;
  HotnessMethod hot = HotnessMethod::kDegree;
  // kPresample: the job whose visits count; without one the split `train`,
  // fanouts 15,10,5, batches of 1024, `seed`, in a direction that is stored.
  std::optional<JobSpec> hot_job;
  uint32_t hot_batches = 100;          // at most so many batches of one epoch
  DType feature_dtype = DType::kNone;  // of nodes; kNone: as in the dataset
  // Store the neighbours' original ids in the lists: LABOR draws by them.
  bool neighbor_original_ids = true;
  // For windows of rows and lists; what grows with nodes, and METIS, come on
  // top.
  uint64_t memory_bytes = uint64_t{1} << 30;
};

struct PartitionReport {
  std::vector<PartSummary> parts;
  int64_t nodes = 0;
  int64_t edges = 0;
  int64_t cut_edges = 0;

  // The largest share of nodes (edges), in units of an equal share.
  double node_balance() const;
  double edge_balance() const;
};

// Writes the store `target` (docs/format.md). The same dataset and options
// give the same files. Single-threaded; shows progress.
// ALREADY_EXISTS: `target` exists. FAILED_PRECONDITION: not a dataset, too
// large for METIS, lacks a direction, or features that cannot be cast.
// INVALID_ARGUMENT: a value out of range, an assignment that does not fit.
// NOT_FOUND: no dataset; no split to pre-sample. DATA_LOSS. CANCELLED.
absl::StatusOr<PartitionReport> PartitionDataset(
    const std::filesystem::path& dataset, const std::filesystem::path& target,
    const PartitionOptions& options);

}  // namespace millrace
