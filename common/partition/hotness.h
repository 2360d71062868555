// SPDX-License-Identifier: Apache-2.0
// How often each node is expected to be visited, which determines the order of
// ids within a partition.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/job.h"

namespace millrace {

// [node type][original id]; comparable between types and partitions.
using Hotness = std::vector<std::vector<float>>;

// The number of neighbour lists of these directions that contain a node.
// Streams the edges. DATA_LOSS: damaged lists. CANCELLED: interrupted.
absl::StatusOr<Hotness> DegreeHotness(const Store& dataset,
                                      const std::vector<Direction>& directions);

// The number of batches, among the job's first `max_batches` of epoch 0, that
// contain a node. As a tie-breaker, the node's fraction of the largest of
// `degrees`, scaled below 1, is added.
// NOT_FOUND: no such split. Also the errors of the sampler.
absl::StatusOr<Hotness> PresampleHotness(std::shared_ptr<const Store> dataset,
                                         const JobSpec& job,
                                         uint32_t max_batches,
                                         const Hotness& degrees);

}  // namespace millrace
