// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Rejects implausible node counts. The size of a dataset grows with its node
// counts, yet a count may come from a single number in a file or from one id
// among the edges. Reads tables of edges of unknown length as far as necessary.
// INVALID_ARGUMENT: a node type of over a million nodes has neither columns nor
// at least one edge per thousand nodes, and the user has not given its count
// (RawNodes::count_is_chosen).
absl::Status CheckNodeCounts(const RawGraph& graph);

}  // namespace millrace
