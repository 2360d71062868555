// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/job.h"
#include "common/sample/seed_plan.h"

namespace millrace {

struct ResolvedSeeds {
  std::vector<uint64_t> ids;
  std::vector<int64_t> original_ids;  // as ids
  std::vector<int64_t> times;         // as ids, or empty: not known
};

// The seeds of the batches of a store's splits, for whoever makes batches of
// that store. Needs no mapped partition.
// Threads: any. Lifetime: keeps a reference to `store`.
// The first batch with --seed-order local of a split reads the split once and
// keeps 8 bytes a seed; the other batches find their seeds by arithmetic.
class SplitSeeds {
 public:
  explicit SplitSeeds(const Store& store);
  SplitSeeds(const SplitSeeds&) = delete;
  SplitSeeds& operator=(const SplitSeeds&) = delete;

  // The seeds of a batch of the job's split.
  // NOT_FOUND: no such split. OUT_OF_RANGE: no such batch. INVALID_ARGUMENT:
  // the job has no split (explicit seeds only). DATA_LOSS: a damaged split.
  absl::StatusOr<ResolvedSeeds> OfBatch(const ResolvedJob& job, uint32_t epoch,
                                        uint32_t batch) const;

 private:
  // The numbers in a split of the seeds that each partition owns, in split
  // order, partition after partition.
  struct Owned {
    std::once_flag once;
    absl::Status status;
    std::vector<uint64_t> numbers;
    std::vector<size_t> begins;  // per partition
  };

  absl::Status MakeOwned(size_t split, Owned& owned) const;
  // The numbers in the split of a batch whose positions count the seeds of
  // one partition.
  absl::StatusOr<std::vector<uint64_t>> Numbers(
      size_t split, const SeedPlan::BatchPositions& where) const;
  absl::Status OutOfRange(size_t split, int64_t index, uint64_t id) const;
  absl::Status Damaged(size_t split, const std::string& what) const;

  const Store& store_;
  mutable std::vector<Owned> owned_;  // as manifest().splits; each made once
};

}  // namespace millrace
