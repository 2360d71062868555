// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/status.h"
#include "common/sample/neighbor_source.h"
#include "server/core/call_scope.h"
#include "server/load/hop_budget.h"

namespace millrace {

// State shared by all draws of one hop. All references must outlive it.
struct HopContext : CallScope {
  // Same as CallScope::CheckNotCancelled, but errors name the hop.
  absl::Status CheckNotCancelled() const;

  const DrawContext& draw;
  // What is drawn. A PeerExpand does not use the ids and trees.
  const std::span<const Frontier> frontiers;
  HopBudget& budget;
};

}  // namespace millrace
