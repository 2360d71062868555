// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"
#include "common/sample/seeds/edge_directory.h"

namespace millrace {

// The number of negatives (pairs or destinations) to draw for a batch of
// `seeds` seeds.
int64_t NegativeCount(const Negatives& negatives, size_t seeds);

// Draws the negatives of an edge job's batch (docs/determinism.md, section 6)
// into `negative_src`, `negative_dst` and `false_negatives` of `seeds`,
// replacing given ones. Does nothing if the job has no negatives of its own.
// OUT_OF_RANGE, RESOURCE_EXHAUSTED: too many negatives. Also the errors of
// `directory`.
absl::Status DrawNegatives(const ResolvedJob& job, const Manifest& manifest,
                           uint32_t epoch, uint32_t batch,
                           EdgeDirectory& directory, ResolvedSeeds& seeds);

}  // namespace millrace
