// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/remote/call.h"
#include "common/base/array.h"
#include "common/sample/batch_source.h"

namespace millrace {

// Rows of one node column that one partition owns, and where they go.
struct RowRequest {
  TypeIndex type = 0;
  NodeColumn column = NodeColumn::kFeature;
  DType feature_dtype = DType::kNone;  // cast on the wire
  int partition = 0;
  std::vector<uint64_t> ids;
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

// Asks an owner for the rows (RPC Gather); `done` may run before this
// returns. UNAVAILABLE (nothing was started, `done` never runs): no living
// server of the partition.
absl::StatusOr<std::shared_ptr<Call>> StartRowCall(const CallContext& context,
                                                   RowRequest request,
                                                   CallDone done);

}  // namespace millrace
