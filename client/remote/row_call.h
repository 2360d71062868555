// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/remote/call.h"
#include "common/base/array.h"
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

// Splits the first `count` of `ids` (any dtype of ids) by owner, without those
// that `skip` owns (-1: nobody), at most kMaxIdsPerCall each. The rows are
// positions in `ids`; all else is as in `like`.
std::vector<RowRequest> SplitByOwner(const PartitionBook& book,
                                     const Array& ids, int64_t count, int skip,
                                     const RowRequest& like);
// The same for rows whose owners are given, one for each.
std::vector<RowRequest> SplitByOwner(std::span<const uint32_t> owners,
                                     int parts, const Array& ids, int skip,
                                     const RowRequest& like);

// Asks an owner for the rows (RPC Gather); `done` may run before this
// returns. UNAVAILABLE (nothing was started, `done` never runs): no living
// server of the partition.
absl::StatusOr<std::shared_ptr<Call>> StartRowCall(const CallContext& context,
                                                   RowRequest request,
                                                   CallDone done);

}  // namespace millrace
