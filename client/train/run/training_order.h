// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/explicit_seeds.h"

namespace millrace {

// The order of seeds from a user's file: one list for all epochs, or one for
// each epoch from 0 on.
struct TrainingOrder {
  std::vector<ExplicitSeeds> epochs;
  std::vector<uint64_t> checksums;  // of the ids of each, in their order

  // Returns a checksum of the lists of the first `count` epochs; later lists
  // may change when a run resumes.
  uint64_t ChecksumOf(uint32_t count) const;
};

// Reads original ids from a .npy of integers, [n] or [epochs, n]. Each row must
// contain every seed of `seeds`, the job's, once.
// INVALID_ARGUMENT: fewer rows than `epochs`; a seed that is not the job's,
// occurs twice or is missing (names the first); a job that has a seed twice.
// Also errors of ReadNpyIntegers.
absl::StatusOr<TrainingOrder> ReadTrainingOrder(const std::string& path,
                                                const ExplicitSeeds& seeds,
                                                uint32_t epochs);

}  // namespace millrace
