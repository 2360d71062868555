// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/remote/call_context.h"
#include "common/base/array.h"
#include "common/grpc/call.h"
#include "common/sample/batch_source.h"

namespace millrace {

// Rows of one node column, or of the features of edges, that one partition
// owns, and where they go.
struct RowRequest {
  TypeIndex type = 0;
  NodeColumn column = NodeColumn::kFeature;
  DType feature_dtype = DType::kNone;  // cast on the wire
  RelationIndex edge_relation = -1;    // -1: rows of nodes
  int partition = 0;
  std::vector<uint64_t> ids;  // of edges: rows of the partition's features
  // Row ids[i] lands in row `rows[i]` of `target`.
  std::vector<uint32_t> rows;
  Array target;
};

// Splits `ids` (of any dtype) by the partition that is asked for each,
// `owners[i]` or kNoOwner for nobody, at most kMaxIdsPerCall each. The rows
// are positions in `ids`; all else is as in `like`.
std::vector<RowRequest> SplitByOwner(std::span<const int> owners, int parts,
                                     const Array& ids, const RowRequest& like);

// The owners of the first `count` of `ids`.
std::vector<int> OwnersOf(const PartitionBook& book, const Array& ids,
                          int64_t count);

// Asks an owner for the rows (RPC Gather); `done` may run before this
// returns. UNAVAILABLE (nothing was started, `done` never runs): no living
// server of the partition.
absl::StatusOr<std::shared_ptr<Call>> StartRowCall(const CallContext& context,
                                                   RowRequest request,
                                                   CallDone done);

}  // namespace millrace
