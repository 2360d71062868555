// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sample/neighbor_source.h"
#include "server/core.h"
#include "server/hop_budget.h"

namespace millrace {

// What all that is drawn in one hop shares. All references must outlive it.
struct HopContext {
  // CANCELLED: the client gave up. DEADLINE_EXCEEDED: of the Sample call.
  absl::Status CheckLive() const;

  ServerCore& core;
  ::grpc::CallbackServerContext& call;  // Sample
  const absl::Time deadline;
  const DrawContext& draw;
  // What is drawn. Of an OwnerExpand, the ids and trees are not used.
  const std::span<const Frontier> frontiers;
  HopBudget& budget;
};

}  // namespace millrace
