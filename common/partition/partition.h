// SPDX-License-Identifier: Apache-2.0
// Turns a dataset into a store of several partitions.
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
#include "common/partition/partition_lists.h"
#include "common/sample/job.h"

namespace millrace {

enum class PartitionMethod { kMetis, kLdg, kRandom, kHash, kGiven };
enum class HotnessMethod { kDegree, kPresample };
enum class StoredDirections { kIn, kOut, kBoth };

// "metis", "ldg", ...; "degree", "presample".
std::string_view PartitionMethodName(PartitionMethod method);
std::string_view HotnessMethodName(HotnessMethod method);

struct PartitionOptions {
  int parts =
      1;  // 1 to kMaxPartitions, at most as many as nodes (of all types)
  PartitionMethod method = PartitionMethod::kMetis;
  // For kGiven, .npy files by node type.
  std::map<std::string, std::filesystem::path> assignment;
  uint64_t seed = 1;
  StoredDirections directions = StoredDirections::kIn;
  HotnessMethod hot = HotnessMethod::kDegree;
  // For kPresample, the job whose visits are counted. By default, it has split
  // `train`, fanouts 15,10,5, batches of 1024 and `seed`, and samples in a
  // direction that is stored.
  std::optional<JobSpec> hot_job;
  uint32_t hot_batches = 100;  // maximum number of batches, of one epoch
  // The dtype of the stored node features; kNone means that of the dataset.
  DType feature_dtype = DType::kNone;
  // Whether to store the neighbours' original ids in the lists, as LABOR needs.
  bool neighbor_original_ids = true;
  // Memory for windows of rows and lists. METIS, and data structures that grow
  // with the number of nodes, need more on top of that.
  uint64_t memory_bytes = uint64_t{1} << 30;
};

struct PartitionReport {
  std::vector<PartSummary> parts;
  int64_t nodes = 0;
  int64_t edges = 0;
  int64_t cut_edges = 0;

  // The largest partition's number of nodes (edges), divided by the average.
  double node_balance() const;
  double edge_balance() const;
};

// Writes the store `target` (docs/format.md). The same dataset and options
// give the same files. Single-threaded; shows progress.
// ALREADY_EXISTS: `target` exists. FAILED_PRECONDITION: not a dataset, too
// large for METIS, without a requested direction, or with features that cannot
// be cast. INVALID_ARGUMENT: a value out of range, or an assignment that does
// not match the graph. NOT_FOUND: no dataset, or no split to presample.
// DATA_LOSS: a damaged dataset. RESOURCE_EXHAUSTED: too little memory.
// CANCELLED: interrupted.
absl::StatusOr<PartitionReport> PartitionDataset(
    const std::filesystem::path& dataset, const std::filesystem::path& target,
    const PartitionOptions& options);

}  // namespace millrace
