// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/sample/neighbor_source.h"

namespace millrace {

namespace v1 {
class ExpandReply_Picks;
}  // namespace v1

// Appends to `picks` an owner's answer for all nodes of a frontier or for the
// first ones. Returns for how many nodes.
// INTERNAL, INVALID_ARGUMENT: the answer is inconsistent, or does not fit the
// request.
absl::StatusOr<size_t> AppendPicks(const v1::ExpandReply_Picks& in,
                                   const Schema& schema,
                                   const DrawContext& draw,
                                   const Frontier& frontier, Picks& picks);

}  // namespace millrace
