// SPDX-License-Identifier: Apache-2.0
// The store and the jobs from which fuzz targets make batches.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "common/graph/store.h"
#include "common/sample/batch_source.h"
#include "common/sample/explicit_seeds.h"
#include "common/sample/job.h"

namespace millrace::fuzz {

constexpr int kParts = 2;

// Writes testing::RichGraph() as a store of kParts partitions.
void BuildRichStore(const std::filesystem::path& target);

// The same store, mapped; its files are deleted. Lives until the process ends.
const std::shared_ptr<const Store>& RichStore();

// A job for each sampling method, and the columns of its batches.
struct FuzzJob {
  JobSpec spec;
  Columns columns;
  std::optional<ExplicitSeeds> explicit_seeds;
};
const std::vector<FuzzJob>& RichJobs();

}  // namespace millrace::fuzz
