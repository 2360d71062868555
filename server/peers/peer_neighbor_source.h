// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sample/neighbor_source.h"
#include "server/core/core.h"
#include "server/load/hop_budget.h"
#include "server/peers/hop_context.h"
#include "server/peers/peer_expand.h"

namespace millrace {

// Draws neighbours from all partitions for one Sample call: from lists mapped
// here, and with one Expand call per hop to each other owner, all concurrently.
// A call that fails on one replica is retried on the others.
// Not thread-safe. All references must outlive it.
class PeerNeighborSource final : public NeighborSource {
 public:
  // `budget` grows with the hops.
  PeerNeighborSource(const CallScope& scope, HopBudget& budget)
      : scope_(scope), budget_(budget) {}

  absl::Status Expand(const DrawContext& context,
                      std::span<const Frontier> frontiers,
                      std::span<Picks> picks) override;
  absl::Status Reserve(uint64_t bytes) override {
    return budget_.Reserve(bytes);
  }
  void Release(uint64_t bytes) override { budget_.Release(bytes); }
  void ReleasePicks(const DrawContext& context, uint64_t picks) override {
    budget_.ReleasePicks(context, picks);
  }
  absl::Status CheckNotCancelled() const override {
    return scope_.CheckNotCancelled();
  }

  // Time spent so far waiting for answers of peers and for a peer to become
  // available.
  absl::Duration peer_wait() const { return peer_wait_; }

 private:
  absl::Status ExpandHop(const DrawContext& context,
                         std::span<const Frontier> frontiers,
                         std::span<Picks> picks);
  absl::Status ExpandByOwner(const HopContext& hop, std::span<Picks> picks);
  // The following two count what they wait for, and note the slowest owner,
  // even if they fail.
  absl::Status StartCall(PeerExpand& call);
  absl::Status FinishCalls(
      const std::vector<std::unique_ptr<PeerExpand>>& calls);
  void NoteSlowest(const PeerExpand& call);

  const CallScope& scope_;
  HopBudget& budget_;
  absl::Duration peer_wait_;
  CallTrace::Hop traced_hop_;  // the current one, with --trace-slow
};

}  // namespace millrace
