// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"
#include "common/sample/seeds/seed_schedule.h"

namespace millrace {

// Finds the seeds of the batches of a store's splits. Needs no mapped
// partition. For SeedOrder::kLocal, the first batch of a split reads the whole
// split and keeps 8 bytes per seed; other batches compute where their seeds
// are.
// Threads: any. Lifetime: keeps a reference to `store`.
class SplitSeedReader {
 public:
  explicit SplitSeedReader(const Store& store);
  // Shares what `before` has read. `store` must be one that
  // Store::WithNewSplits() made from the store of `before`.
  SplitSeedReader(const Store& store, const SplitSeedReader& before);
  SplitSeedReader(const SplitSeedReader&) = delete;
  SplitSeedReader& operator=(const SplitSeedReader&) = delete;

  // The seeds of a batch of the job's split.
  // NOT_FOUND: no such split. OUT_OF_RANGE: no such batch. INVALID_ARGUMENT:
  // the job has no split, only explicit seeds. DATA_LOSS: a damaged split.
  absl::StatusOr<ResolvedSeeds> ReadBatch(const ResolvedJob& job,
                                          uint32_t epoch, uint32_t batch) const;

 private:
  // The numbers of a split's seeds, grouped by the partition that owns them,
  // and in split order within a partition.
  struct Owned {
    std::once_flag once;
    absl::Status status;
    std::vector<uint64_t> numbers;
    std::vector<size_t> begins;  // [partition]: its first place in `numbers`
  };

  // What the seeds' order in a split is computed from.
  struct Seeds {
    const std::vector<int64_t>& part_counts;
    // The nodes whose owners own the seeds.
    TypeIndex type;
    const Array& ids;
    std::string path;  // of the file of `ids`, inside the store
    Owned& owned;
  };

  absl::StatusOr<ResolvedSeeds> ReadNodeSeeds(const ResolvedJob& job,
                                              uint32_t epoch,
                                              uint32_t batch) const;
  absl::StatusOr<ResolvedSeeds> ReadEdgeSeeds(const ResolvedJob& job,
                                              uint32_t epoch,
                                              uint32_t batch) const;
  // The numbers that the seeds of a batch have in the split.
  absl::StatusOr<std::vector<uint64_t>> Numbers(const JobSpec& spec,
                                                const Seeds& seeds,
                                                uint32_t epoch,
                                                uint32_t batch) const;
  absl::Status MakeOwned(const Seeds& seeds) const;
  // Appends the rows `numbers` of a column of ids, and their original ids.
  absl::Status AddNodes(TypeIndex type, const Array& ids,
                        const Array& original_ids, const std::string& path,
                        std::span<const uint64_t> numbers,
                        ResolvedNodes& nodes) const;
  absl::Status OutOfRange(TypeIndex type, const std::string& path,
                          int64_t index, uint64_t id) const;
  absl::Status Damaged(const std::string& path, const std::string& what) const;

  const Store& store_;
  // In the order of manifest().splits and edge_splits. Each is filled once, and
  // shared with the SplitSeedReaders that are made from this one.
  std::vector<std::shared_ptr<Owned>> owned_, edge_owned_;
};

}  // namespace millrace
