// SPDX-License-Identifier: Apache-2.0
// Reads datasets and stores (docs/format.md) by mapping their files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/base/huge_array.h"
#include "common/graph/manifest.h"
#include "common/graph/partition_book.h"
#include "common/graph/schema.h"
#include "common/graph/split_members.h"

namespace millrace {

// Columns of one node type in one partition; those that do not exist are absent
// arrays. Row i belongs to id book.begin(partition) + i.
struct NodeColumns {
  Array original_id;  // [n_p] id dtype
  Array feature;      // [n_p, d]
  Array label;        // [n_p] or [n_p, k]
  Array time;         // [n_p] int64
  Array hotness;      // [n_p] float32
  Array lookup;       // ids by original id (PartitionBook::lookup_width)
};

// Neighbour lists of one relation and direction in one partition.
struct NeighborLists {
  Array indptr;   // [n_p + 1] int64
  Array indices;  // [e_p] ids of the neighbours
  Array edge_id;  // [e_p] int64
  Array weight;   // [e_p] float32
  // [e_p] uint64: sums of integer weights within each list (weights.h).
  Array weight_sum;
  Array time;  // [e_p] int64
  Array type;  // [e_p] int32
  Array slot;  // [e_p] int64, out-lists only
  // [e_p] id dtype of the neighbours; absent in datasets, whose indices are
  // original ids.
  Array neighbor_original_id;
  bool present() const { return indptr.present(); }
};

struct EdgeColumns {
  NeighborLists in, out;
  Array feature;  // [e_p of in, d]

  const NeighborLists& lists(Direction direction) const {
    return direction == Direction::kIn ? in : out;
  }
};

struct Partition {
  std::vector<NodeColumns> nodes;  // per node type
  std::vector<EdgeColumns> edges;  // per relation
};

struct Split {
  Array id;           // [s] id dtype
  Array original_id;  // [s] int64, ascending
  Array time;         // [s] int64; absent unless the type has times
};

// Seeds that are pairs of nodes, in the order in which they were made; columns
// that do not exist are absent arrays.
struct EdgeSplit {
  Array src, dst;                          // [s] id dtype of each type
  Array src_original_id, dst_original_id;  // [s] int64
  Array edge_id;                           // [s] int64
  Array time;                              // [s] int64
  Array edge_type;                         // [s] int32
  Array label;                             // [s]
  Array negative;                          // [s, k] ids of destinations
  Array negative_original_id;              // [s, k] int64
};

// Reads store.json of the dataset or store at `path`, and no other file. Any
// thread. NOT_FOUND, DATA_LOSS, FAILED_PRECONDITION: as Store::Open().
absl::StatusOr<Manifest> ReadManifest(const std::filesystem::path& path);

// An open dataset or store. Immutable once shared; any thread may read it. An
// array stays valid as long as the store or a copy of the array lives.
class Store {
 public:
  // Opens `path` and maps the given partitions, or all if the list is empty.
  // Checks store.json, and the size and header of every file that it maps.
  // NOT_FOUND: `path` is not a store, or this host has no copy of a partition.
  // DATA_LOSS: damaged; the message names the file. OUT_OF_RANGE: no such
  // partition. FAILED_PRECONDITION: a format version that this program does not
  // read.
  static absl::StatusOr<std::unique_ptr<Store>> Open(
      const std::filesystem::path& path, std::vector<int> partitions = {});
  // The same for the partitions that this host has (partitions_on_host.h),
  // which may be none.
  static absl::StatusOr<std::unique_ptr<Store>> OpenOnHost(
      const std::filesystem::path& path);

  // Makes a store that also has the splits that other programs have added to
  // store.json since this store was opened; null if there are none. It shares
  // the partitions with this store.
  // FAILED_PRECONDITION: store.json has changed in other ways. Also the errors
  // of Open().
  absl::StatusOr<std::unique_ptr<Store>> WithNewSplits() const;

  // Replaces the mappings of the graph (lists, ids, labels) or of the features
  // by copies in memory, to avoid page faults. `allocate` makes the arrays of
  // the copies. Must be called before the store is shared; arrays handed out
  // earlier stay mapped.
  // RESOURCE_EXHAUSTED: they do not fit in the available memory. Also the
  // errors of `allocate`. After an error nothing is replaced.
  enum class Content { kGraph, kFeatures };
  using AllocateArray = std::function<absl::StatusOr<Array>(
      DType dtype, std::vector<int64_t> shape)>;
  absl::Status LoadIntoMemory(
      Content content, const AllocateArray& allocate = AllocateHugeArray);

  // How much memory the copies take; 0 if there are none.
  uint64_t loaded_bytes(Content content) const {
    return content == Content::kGraph ? graph_bytes_ : feature_bytes_;
  }

  // A file whose data was copied into memory and is read there.
  struct LoadedFile {
    std::string header;  // the bytes before the data
    Array data;
  };
  // `path` is relative to the store. Null if the file is mapped or not in use.
  // The result lives as long as the store.
  const LoadedFile* FindLoaded(std::string_view path) const;

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  const Schema& schema() const { return manifest_.schema; }
  const PartitionBook& book(TypeIndex type) const {
    return manifest_.books[type];
  }
  int partition_count() const { return manifest_.partition_count(); }
  // The partitions that are mapped, ascending.
  const std::vector<int>& mapped_partitions() const { return mapped_; }
  // Whether all partitions are mapped.
  bool is_whole() const { return mapped_.size() == partitions_.size(); }

  // Null if the partition is not mapped.
  const Partition* partition(int index) const {
    return partitions_[index].get();
  }

  // NOT_FOUND: no such split; the message lists those of the type. The result
  // lives as long as the store.
  absl::StatusOr<const Split*> FindSplit(TypeIndex type,
                                         std::string_view name) const;
  // The nodes of a type's split, computed at the first call; null if the type
  // has no split of that name. DATA_LOSS: the split is damaged.
  absl::StatusOr<const SplitMembers*> FindMembers(TypeIndex type,
                                                  std::string_view name) const;
  // `index` is an index into manifest().splits or manifest().edge_splits.
  const Split& split(size_t index) const { return splits_[index]; }
  const EdgeSplit& edge_split(size_t index) const {
    return edge_splits_[index];
  }

 private:
  struct Members {
    std::once_flag once;
    absl::Status status;
    SplitMembers nodes;
  };

  Store() = default;
  // Reads store.json; maps nothing.
  static absl::StatusOr<std::unique_ptr<Store>> Read(
      const std::filesystem::path& path);
  // `partitions` must be ascending and exist.
  absl::Status MapPartitions(std::vector<int> partitions);
  // Maps the splits of the manifest, except those that `known` already has,
  // which are shared with it.
  absl::Status MapSplits(const Store* known);
  absl::StatusOr<SplitMembers> MakeMembers(size_t split) const;

  std::filesystem::path path_;
  Manifest manifest_;
  std::vector<int> mapped_;
  // By partition. These and members_ are shared with the stores that
  // WithNewSplits() makes from this one.
  std::vector<std::shared_ptr<Partition>> partitions_;
  std::map<std::string, LoadedFile, std::less<>> loaded_;  // by path
  uint64_t graph_bytes_ = 0, feature_bytes_ = 0;           // in loaded_
  // Parallel to manifest_.splits.
  std::vector<Split> splits_;
  std::vector<std::shared_ptr<Members>> members_;
  // Parallel to manifest_.edge_splits.
  std::vector<EdgeSplit> edge_splits_;
};

// Paths of files relative to the store, as docs/format.md defines them.
std::string PartName(int partition);  // "part-00000"
std::string NodePath(int partition, std::string_view type,
                     std::string_view column);
std::string ListPath(int partition, std::string_view relation,
                     Direction direction, std::string_view column);
std::string EdgeFeaturePath(int partition, std::string_view relation);
std::string LookupPath(int partition, std::string_view type);
// `type` is the name of a node type or a relation.
std::string SplitPath(std::string_view type, std::string_view split,
                      std::string_view column);

}  // namespace millrace
