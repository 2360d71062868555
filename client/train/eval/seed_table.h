// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/train/task/task.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// The seeds of one split with their labels, which a metric is computed over.
struct SeedTable {
  std::string split;
  at::Tensor original_id;  // [n] kLong
  at::Tensor label;        // [n] or [n, k]; see ReadLabels

  int64_t size() const { return original_id.size(0); }
};

// Reads the split of `job`'s seed type (or `seeds`, original ids) from the
// source, without neighbours, features and times.
// NOT_FOUND: no such split. FAILED_PRECONDITION: the type has no labels (says
// how to import them). Fails like ReadLabels and the source.
absl::StatusOr<SeedTable> ReadSeedTable(
    std::shared_ptr<BatchSource> source, const JobSpec& job, TaskKind task,
    const std::string& split,
    std::optional<ExplicitSeeds> seeds = std::nullopt);

}  // namespace millrace
