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

// How often a node occurs in the neighbour lists of these directions. Streams
// the edges. DATA_LOSS: damaged lists. CANCELLED: interrupted.
absl::StatusOr<Hotness> DegreeHotness(const Store& dataset,
                                      const std::vector<Direction>& directions);

// The number of batches, among the job's first `max_batches` of epoch 0, that
// contain a node. To break ties, a number below 1 is added, which is
// proportional to the node's value in `degrees`.
// NOT_FOUND: no such split. CANCELLED: interrupted. Also the errors of
// ResolveJob() and of the sampler.
absl::StatusOr<Hotness> PresampleHotness(
    const std::shared_ptr<const Store>& dataset, const JobSpec& job,
    uint32_t max_batches, const Hotness& degrees);

}  // namespace millrace
