// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// What a dataset takes grows with its node counts, and a count may be no more
// than a number in a file, or one id among the edges.
// INVALID_ARGUMENT: a node type of over a million nodes has neither columns nor
// an edge for each thousand of them, and nobody has said that it is so
// (RawNodes::count_is_chosen). Reads edges of tables that do not know their
// length, as far as it must.
absl::Status CheckNodeCounts(const RawGraph& graph);

}  // namespace millrace
