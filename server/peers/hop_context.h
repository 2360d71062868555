// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "common/sample/neighbor_source.h"
#include "server/core/call_scope.h"
#include "server/load/hop_budget.h"

namespace millrace {

// What all draws of one hop share. All references must outlive it.
struct HopContext {
  const CallScope& scope;
  const DrawContext& draw;
  // What is drawn. A PeerExpand does not use the ids and trees.
  const std::span<const Frontier> frontiers;
  HopBudget& budget;
};

}  // namespace millrace
