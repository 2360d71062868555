// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "absl/status/status.h"
#include "common/sample/neighbor_source.h"
#include "server/call_scope.h"
#include "server/hop_budget.h"

namespace millrace {

// What all that is drawn in one hop shares. All references must outlive it.
struct HopContext : CallScope {
  // As CallScope::CheckLive; names the hop.
  absl::Status CheckLive() const;

  const DrawContext& draw;
  // What is drawn. Of an OwnerExpand, the ids and trees are not used.
  const std::span<const Frontier> frontiers;
  HopBudget& budget;
};

}  // namespace millrace
