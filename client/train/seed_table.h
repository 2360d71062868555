// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"

namespace millrace {

// The seeds of one split with their classes: what accuracy is counted over.
struct SeedTable {
  std::string split;
  at::Tensor original_id;  // [n] kLong
  at::Tensor label;        // [n] kLong, kUnlabelled where none

  int64_t size() const { return original_id.size(0); }
  // 1 + the largest class; 0 when nothing is labelled.
  int64_t classes() const;
};

// Reads the split of `job`'s seed type (or `seeds`, original ids) from the
// source, without neighbours and features.
// NOT_FOUND: no such split. FAILED_PRECONDITION: the type has no labels (says
// how to import them). Errors of ClassLabels and of the source.
absl::StatusOr<SeedTable> ReadSeedTable(
    std::shared_ptr<BatchSource> source, const JobSpec& job,
    const std::string& split,
    std::optional<std::vector<int64_t>> seeds = std::nullopt);

}  // namespace millrace
