// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/edge_split.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Edges by their places in the user's list (their edge ids), in any order.
struct EdgeSelection {
  std::string name;  // of the split
  std::vector<int64_t> ids;
  // Where the ids stand, for messages; null: nobody gave them.
  std::shared_ptr<const RowSource> source = nullptr;
};

// The splits of these edges of a relation, with the times and types that it
// has, in the order of the ids. Reads the relation once, without its weights
// and features. Errors of EdgeReader; INVALID_ARGUMENT: an id that no edge
// has.
absl::StatusOr<std::vector<EdgeSplitColumns>> SelectEdges(
    const RawGraph& graph, const RawEdges& relation,
    std::vector<EdgeSelection> selections);

// "WHERE: edge id 7 is out of range: a__b__c has 5 edges, ids are 0 to 4".
std::string EdgeIdRangeText(const std::string& where, int64_t id,
                            const std::string& relation, int64_t count);

// The relation without the columns that splits do not have.
RawEdges WithoutWeights(const RawEdges& relation);

}  // namespace millrace
