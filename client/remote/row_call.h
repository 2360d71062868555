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

// Asks an owner for the rows (RPC Gather); `done` may run before this
// returns. UNAVAILABLE (nothing was started, `done` never runs): no living
// server of the partition.
absl::StatusOr<std::shared_ptr<Call>> StartRowCall(const CallContext& context,
                                                   RowRequest request,
                                                   CallDone done);

}  // namespace millrace
