// SPDX-License-Identifier: Apache-2.0
// How often each node is expected to be visited: the order of ids inside a
// partition.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/store.h"
#include "common/sample/job.h"

namespace millrace {

// [node type][original id]; comparable between types and partitions.
using Hotness = std::vector<std::vector<float>>;

// In how many neighbour lists of these directions a node occurs. Edges
// stream. DATA_LOSS: damaged lists. CANCELLED.
absl::StatusOr<Hotness> DegreeHotness(const Store& dataset,
                                      const std::vector<Direction>& directions);

// In how many of the job's first `max_batches` batches of epoch 0 a node
// occurs, plus its share of the largest of `degrees` (below 1), which orders
// what was visited equally often.
// NOT_FOUND: no such split. Errors of the sampler.
absl::StatusOr<Hotness> PresampleHotness(std::shared_ptr<const Store> dataset,
                                         const JobSpec& job,
                                         uint32_t max_batches,
                                         const Hotness& degrees);

}  // namespace millrace
