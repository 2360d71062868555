// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/grpc/fleet.h"
#include "common/sample/neighbor_source.h"
#include "server/core.h"

namespace millrace {

// The nodes of one hop that one partition owns, by frontier, and what was
// drawn for them.
struct OwnedFrontier {
  std::vector<uint64_t> ids;
  std::vector<uint32_t> trees;  // disjoint jobs only
  Picks picks;
};

// One hop's conversation with the owner of another partition: as a rule one
// Expand; more when the frontier or the answer is too large for one message,
// or when a replica fails.
// Threads: one; Start() does not wait for the answer, Finish() does.
class OwnerExpand {
 public:
  // `frontiers` says what is drawn (their ids and trees are ignored);
  // `owned[i]` belongs to frontiers[i]. All must outlive this object.
  OwnerExpand(ServerCore& core, ::grpc::CallbackServerContext& context,
              absl::Time deadline, const DrawContext& draw,
              std::span<const Frontier> frontiers, int partition,
              std::vector<OwnedFrontier>& owned);
  // Waits for a call in flight.
  ~OwnerExpand();

  absl::Status Start();
  // Fills owned[i].picks. Errors name partition and server.
  absl::Status Finish();

 private:
  struct Call;

  absl::Status Send();
  absl::StatusOr<std::shared_ptr<FleetMember>> PickMember();
  void FillRequest(Call& call);
  absl::Status TakeReply(const Call& call);
  absl::Status Retry(const absl::Status& failure);
  absl::Status Named(const absl::Status& status) const;
  void SkipEmpty();

  ServerCore& core_;
  ::grpc::CallbackServerContext& context_;
  const absl::Time deadline_;
  const DrawContext& draw_;
  const std::span<const Frontier> frontiers_;
  const int partition_;
  std::vector<OwnedFrontier>& owned_;

  // The first node that is not answered yet.
  size_t frontier_ = 0;
  size_t node_ = 0;

  int failures_ = 0;
  std::vector<const FleetMember*> failed_;
  std::shared_ptr<FleetMember> member_;  // asked last; shared with the fleet
  std::unique_ptr<Call> call_;           // in flight
};

}  // namespace millrace
