// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/remote/call_context.h"
#include "common/base/array.h"
#include "common/grpc/call/call.h"
#include "common/sample/batch_source.h"

namespace millrace {

// Rows of one node column, or of edge features, that one partition owns, and
// where to write them.
struct RowRequest {
  TypeIndex type = 0;
  NodeColumn column = NodeColumn::kFeature;
  DType feature_dtype = DType::kNone;  // cast on the wire
  RelationIndex edge_relation = -1;    // -1 for node rows
  int partition = 0;
  std::vector<uint64_t> ids;  // for edges: rows in the partition
  // Row `ids[i]` is written to row `rows[i]` of `target`.
  std::vector<uint32_t> rows;
  Array target;
};

// Splits `ids` (uint32 or uint64) by the partition to ask for each, `owners[i]`
// (kNoOwner: ask nobody), into requests of at most kMaxIdsPerCall. Their `rows`
// are positions in `ids`; the other fields are copied from `prototype`.
std::vector<RowRequest> SplitByOwner(std::span<const int> owners, int parts,
                                     const Array& ids,
                                     const RowRequest& prototype);

// The owner of each of the first `count` of `ids` (uint32 or uint64).
std::vector<int> OwnersOf(const PartitionBook& book, const Array& ids,
                          int64_t count);

// Asks an owner for the rows (RPC Gather); `done` may run before this returns.
// Fails like Refusals::Pick: nothing was started, and `done` never runs.
absl::StatusOr<std::shared_ptr<Call>> StartRowCall(const CallContext& context,
                                                   RowRequest request,
                                                   CallDone done);

}  // namespace millrace
