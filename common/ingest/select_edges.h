// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/edge_split_writer.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// Selected edges, given by their positions in the user's list (their edge ids)
// in any order.
struct EdgeSelection {
  std::string name;  // the split's name
  std::vector<int64_t> ids;
  // Where the ids come from, for messages; null if the user did not give them.
  std::shared_ptr<const RowSource> source = nullptr;
};

// Makes a split of each selection, in the order of its ids, with the times and
// types that the relation has. Reads the relation once, without its weights and
// features. INVALID_ARGUMENT: no edge has one of the ids. Also the errors of
// EdgeReader.
absl::StatusOr<std::vector<EdgeSplitColumns>> SelectEdges(
    const RawGraph& graph, const RawEdges& relation,
    std::vector<EdgeSelection> selections);

// "WHERE: edge id 7 is out of range: a__b__c has 5 edges, ids are 0 to 4".
std::string EdgeIdRangeText(const std::string& where, int64_t id,
                            const std::string& relation, int64_t count);

// The relation without the columns that splits do not have.
RawEdges WithoutWeights(const RawEdges& relation);

}  // namespace millrace
