// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/graph/manifest.h"
#include "common/sample/job.h"
#include "common/sample/resolved_seeds.h"
#include "common/sample/seeds/edge_directory.h"

namespace millrace {

// Negatives of one batch by its number of seeds: how many pairs or
// destinations are drawn.
int64_t NegativeCount(const Negatives& negatives, size_t seeds);

// Draws the negatives of an edge job's batch (docs/determinism.md section 6)
// into seeds.negative_src, negative_dst and false_negatives, in the place of
// given ones; nothing where the job draws none.
// Errors: those of EdgeDirectory.
absl::Status DrawNegatives(const ResolvedJob& job, const Manifest& manifest,
                           uint32_t epoch, uint32_t batch,
                           EdgeDirectory& directory, ResolvedSeeds& seeds);

}  // namespace millrace
