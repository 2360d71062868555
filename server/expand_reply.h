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

// Appends what an owner answers about the nodes of a frontier, or the first of
// them, to `picks`; returns how many nodes that are.
// INTERNAL, INVALID_ARGUMENT: it contradicts itself, or what was asked.
absl::StatusOr<size_t> AppendPicks(const v1::ExpandReply_Picks& in,
                                   const Schema& schema,
                                   const DrawContext& draw,
                                   const Frontier& frontier, Picks& picks);

}  // namespace millrace
