// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// The edges of one split.
struct LinkTable {
  at::Tensor src;        // [n] kLong, original ids
  at::Tensor dst;        // [n] kLong
  at::Tensor edge_type;  // [n] kLong; all 0 if the split has none

  int64_t size() const { return src.size(0); }
  // One more than the largest type; 1 if there are no edges.
  int64_t edge_types() const;
};

// Returns a job for the seeds of one split of `job`'s seed relation, in the
// order of the split, without neighbours and negatives.
JobSpec BareLinkJob(const JobSpec& job, const std::string& split);

// Reads the split of `job`'s seed relation (or `seeds`) from the source.
// NOT_FOUND: no such split. INVALID_ARGUMENT: a negative edge type. Also
// the errors of the source.
absl::StatusOr<LinkTable> ReadLinkTable(
    std::shared_ptr<BatchSource> source, const JobSpec& job,
    const std::string& split,
    std::optional<ExplicitSeeds> seeds = std::nullopt);

}  // namespace millrace
