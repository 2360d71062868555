// SPDX-License-Identifier: Apache-2.0
// Which seeds a batch of an epoch has (docs/determinism.md, section 4).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"

namespace millrace {

// Computes the batches of an epoch; nothing is stored per seed. Immutable; any
// thread may use it.
class SeedSchedule {
 public:
  // Where a batch's seeds are. `positions` are numbers of seeds in the split if
  // `partition` is negative. Otherwise (SeedOrder::kLocal), they are numbers
  // among the seeds that `partition` owns, in split order.
  struct BatchPositions {
    int partition = -1;
    std::vector<uint64_t> positions;
  };

  // `part_counts` is the number of the split's seeds per partition. With
  // SeedOrder::kGlobal, batches depend only on its sum.
  SeedSchedule(const JobSpec& spec, std::vector<int64_t> part_counts);

  int64_t seed_count() const { return seed_count_; }
  // Number of batches, the same for every epoch.
  uint32_t batch_count() const { return batch_count_; }
  // The partition that owns the seeds of a batch (kLocal), or the preferred
  // home `batch mod partitions` (kGlobal).
  int FindHome(uint32_t epoch, uint32_t batch) const;
  // OUT_OF_RANGE: batch >= batch_count().
  absl::StatusOr<BatchPositions> Positions(uint32_t epoch,
                                           uint32_t batch) const;

 private:
  struct Slot {
    int partition;
    uint32_t batch;  // within the partition
  };
  Slot FindSlot(uint32_t epoch, uint32_t batch) const;
  uint32_t CountBatches(int64_t seeds) const;

  JobSpec spec_;
  std::vector<int64_t> part_counts_;
  std::vector<uint32_t> part_batches_;  // batches per partition, if kLocal
  int64_t seed_count_ = 0;
  uint32_t batch_count_ = 0;
};

}  // namespace millrace
