// SPDX-License-Identifier: Apache-2.0
// store.json as a value; see docs/format.md, section 3.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/partition_book.h"
#include "common/graph/schema.h"

namespace millrace {

inline constexpr std::string_view kStoreFormat = "millrace-store";
// The version that is written. Version 2, whose splits have no fingerprints of
// their own, can still be read.
inline constexpr int kStoreVersion = 3;
inline constexpr int kOldestStoreVersion = 2;
inline constexpr int kSamplingVersion = 1;

// Identifies the seeds of a split, however its store is partitioned.
struct SplitIdentity {
  // SHA-256 over the list of the split's files, except those that hold ids, as
  // 64 hex digits. Empty if a server does not report it.
  std::string fingerprint = {};
  // Whether the store's fingerprint covers the split's files too, which is the
  // case if store.json has no fingerprint for the split (version 2).
  bool within_store = false;
  // If servers of the fleet have different splits of this name, the error
  // message for jobs that use the split; otherwise empty.
  std::string conflict = {};

  friend bool operator==(const SplitIdentity&, const SplitIdentity&) = default;
};

struct SplitInfo {
  TypeIndex type = 0;
  std::string name;
  int64_t count = 0;
  std::vector<int64_t> part_counts;  // seeds owned by each partition
  SplitIdentity identity = {};
  friend bool operator==(const SplitInfo&, const SplitInfo&) = default;
};

// Seeds that are pairs of nodes, in the order in which they were made; they
// need not be edges of the graph. All columns except the two ends are optional.
struct EdgeSplitInfo {
  RelationIndex relation = 0;
  std::string name;
  int64_t count = 0;
  std::vector<int64_t> part_counts;  // by the owner of the destination
  bool has_edge_id = false;
  bool has_time = false;
  bool has_edge_type = false;
  ColumnSpec label = {};  // scalar
  int64_t negatives = 0;  // number of given negative destinations per seed
  SplitIdentity identity = {};
  friend bool operator==(const EdgeSplitInfo&, const EdgeSplitInfo&) = default;
};

struct FileInfo {
  std::string path;  // relative, '/' separated
  uint64_t bytes = 0;
  uint64_t xxh3 = 0;
};

// What a partitioner records about its work, for `millrace inspect`.
struct PartitioningInfo {
  std::string method = "none";  // "none" in a dataset
  uint64_t seed = 0;
  std::string hot;         // "degree", "presample" or empty
  int64_t cut_edges = -1;  // -1 if not known
};

struct Manifest {
  int version = kStoreVersion;  // of the store.json that was read
  int sampling_version = kSamplingVersion;
  std::string uuid;
  // Identifies the graph and its partitions; 64 hex digits (see
  // ComputeFingerprint).
  std::string fingerprint;
  // Identifies the content, however it is partitioned: the fingerprint of the
  // dataset as it was imported, which partitioning preserves. Stores with the
  // same dataset fingerprint and the same identity of a job's splits give the
  // same batches, unless seeds are taken in local order.
  std::string dataset_fingerprint;
  PartitioningInfo partitioning;
  Schema schema;
  std::vector<PartitionBook> books;  // per node type
  std::vector<SplitInfo> splits;
  std::vector<EdgeSplitInfo> edge_splits;
  // Whether the lists store the original ids of neighbours.
  bool neighbor_original_ids = false;
  std::vector<FileInfo> files;

  // In a dataset, ids are original ids.
  bool is_dataset() const { return partitioning.method == "none"; }
  // Whether a neighbour's list entry tells its original id.
  bool draws_by_neighbor() const {
    return neighbor_original_ids || is_dataset();
  }
  int partition_count() const {
    return books.empty() ? 1 : books[0].partition_count();
  }

  // The index in `splits` of a type's split.
  // NOT_FOUND: the type has no such split; the message lists those it has.
  // FAILED_PRECONDITION: servers of the fleet have different splits of this
  // name; the message names two servers.
  absl::StatusOr<size_t> FindSplit(TypeIndex type, std::string_view name) const;
  // The same for `edge_splits`.
  absl::StatusOr<size_t> FindEdgeSplit(RelationIndex relation,
                                       std::string_view name) const;
  // A relation's split; null if it has no such split.
  const EdgeSplitInfo* EdgeSplit(RelationIndex relation,
                                 std::string_view name) const;
};

// Parses and checks store.json; `origin` names it in messages.
// DATA_LOSS: damaged (not JSON, wrong checksum, wrong types, contradictions).
// FAILED_PRECONDITION: a format version that this program does not read.
absl::StatusOr<Manifest> ParseManifest(std::string_view json,
                                       std::string_view origin);
// The whole text of store.json, including the checksum.
std::string FormatManifest(const Manifest& manifest);
// The fingerprint of a dataset after a change that `change` describes.
std::string ChangedFingerprint(const std::string& fingerprint,
                               const std::string& change);
// The fingerprint of a store: SHA-256 over the sorted list of its files, except
// those in the folders `apart` (each "splits/TYPE/NAME/").
std::string ComputeFingerprint(
    const std::vector<FileInfo>& files,
    const std::set<std::string, std::less<>>& apart = {});
// The same, leaving out the splits that are not `within_store`.
std::string ComputeFingerprint(const Manifest& manifest);
// The fingerprints of all splits that have files, by folder.
using SplitFingerprints = std::map<std::string, std::string>;
SplitFingerprints ComputeSplitFingerprints(const std::vector<FileInfo>& files);
// The folder of a split in its store: "splits/TYPE/NAME/".
std::string SplitFolder(const Schema& schema, const SplitInfo& split);
std::string SplitFolder(const Schema& schema, const EdgeSplitInfo& split);
// Computes, from `files`, the fingerprints of all splits and then of the store,
// as the current format version requires.
void SetFingerprints(Manifest& manifest);

}  // namespace millrace
