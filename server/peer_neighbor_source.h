// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sample/neighbor_source.h"
#include "server/admission.h"
#include "server/core.h"

namespace millrace {

// The neighbours of all partitions, for one Sample call: draws from lists
// mapped here, and asks other owners with one Expand each per hop, all at the
// same time. A call that fails on one replica is tried on the others.
// Threads: one. All references must outlive it.
class PeerNeighborSource final : public NeighborSource {
 public:
  // `context`: of the Sample call, whose deadline and cancellation reach the
  // peers. `reservation` grows with the hops.
  PeerNeighborSource(ServerCore& core, ::grpc::CallbackServerContext& context,
                     absl::Time deadline, Admission::Reservation& reservation)
      : core_(core),
        context_(context),
        deadline_(deadline),
        reservation_(reservation) {}

  absl::Status Expand(const DrawContext& context,
                      std::span<const Frontier> frontiers,
                      std::span<Picks> picks) override;

  // Time spent waiting for peers so far.
  absl::Duration peer_wait() const { return peer_wait_; }
  // Bytes asked of the reservation so far.
  uint64_t bytes() const { return bytes_; }

 private:
  absl::Status ReserveHop(const DrawContext& context,
                          std::span<const Frontier> frontiers);
  absl::Status CheckLive(int hop) const;

  ServerCore& core_;
  ::grpc::CallbackServerContext& context_;
  const absl::Time deadline_;
  Admission::Reservation& reservation_;
  absl::Duration peer_wait_;
  uint64_t bytes_ = 0;
  std::vector<uint64_t> expected_picks_;  // per frontier of this hop
};

}  // namespace millrace
