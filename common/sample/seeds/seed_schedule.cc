// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/seed_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/strings.h"
#include "common/sample/draw/draw.h"

namespace millrace {
namespace {

// Hop numbers of the two uses of Purpose::kShuffle.
constexpr int kGlobalOrder = 0;
constexpr int kPartitionOrder = 1;

}  // namespace

SeedSchedule::SeedSchedule(const JobSpec& spec,
                           std::vector<int64_t> part_counts)
    : spec_(spec), part_counts_(std::move(part_counts)) {
  seed_count_ =
      std::accumulate(part_counts_.begin(), part_counts_.end(), int64_t{0});
  if (spec_.seed_order == SeedOrder::kGlobal) {
    batch_count_ = CountBatches(seed_count_);
    return;
  }
  for (const int64_t count : part_counts_) {
    part_batches_.push_back(CountBatches(count));
    batch_count_ += part_batches_.back();
  }
}

uint32_t SeedSchedule::CountBatches(int64_t seeds) const {
  const int64_t size = spec_.batch_size;
  const int64_t batches =
      spec_.drop_last ? seeds / size : seeds / size + (seeds % size != 0);
  return static_cast<uint32_t>(
      std::min<int64_t>(batches, std::numeric_limits<uint32_t>::max()));
}

SeedSchedule::Slot SeedSchedule::FindSlot(uint32_t epoch,
                                          uint32_t batch) const {
  uint64_t number = batch;
  if (spec_.shuffle) {
    const DrawDomain domain{.job_seed = spec_.seed,
                            .epoch = epoch,
                            .purpose = Purpose::kInterleave};
    number = Permutation(domain.Key(), batch_count_)(batch);
  }
  int part = 0;
  while (number >= part_batches_[part]) number -= part_batches_[part++];
  return {part, static_cast<uint32_t>(number)};
}

int SeedSchedule::FindHome(uint32_t epoch, uint32_t batch) const {
  if (spec_.seed_order == SeedOrder::kLocal && batch < batch_count_) {
    return FindSlot(epoch, batch).partition;
  }
  return static_cast<int>(batch % part_counts_.size());
}

absl::StatusOr<SeedSchedule::BatchPositions> SeedSchedule::Positions(
    uint32_t epoch, uint32_t batch) const {
  if (batch >= batch_count_) {
    return absl::OutOfRangeError(
        StrCat("batch ", batch, " does not exist: an epoch of this job ",
               "has ", batch_count_, " batches of ", spec_.batch_size,
               " seeds, numbered from 0"));
  }
  Slot slot{-1, batch};
  DrawDomain domain{.job_seed = spec_.seed,
                    .epoch = epoch,
                    .purpose = Purpose::kShuffle,
                    .hop = kGlobalOrder};
  int64_t count = seed_count_;
  if (spec_.seed_order == SeedOrder::kLocal) {
    slot = FindSlot(epoch, batch);
    domain.hop = kPartitionOrder;
    domain.relation = slot.partition;
    count = part_counts_[slot.partition];
  }
  const int64_t begin = slot.batch * spec_.batch_size;
  const int64_t end = std::min(begin + spec_.batch_size, count);
  BatchPositions result{slot.partition, std::vector<uint64_t>(end - begin)};
  std::iota(result.positions.begin(), result.positions.end(), begin);
  if (spec_.shuffle) {
    const Permutation permutation(domain.Key(), count);
    for (uint64_t& position : result.positions) {
      position = permutation(position);
    }
  }
  return result;
}

}  // namespace millrace
