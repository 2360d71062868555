// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/fleet.h"
#include "common/grpc/refusals.h"
#include "server/call_scope.h"

namespace millrace {

// Which server of another partition is asked, and, after a failure, whether
// another one is.
// Threads: one, but for Report(). `scope` must outlive it.
class PeerPicker {
 public:
  PeerPicker(const CallScope& scope, int partition)
      : scope_(scope), partition_(partition) {}

  // A living server, one that has not failed yet where there is one; waits for
  // ServerOptions::peer_wait at most and no longer than the client does. Where
  // all have refused: the error of Refusals::Pick.
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick();

  // Tells the fleet how a call to `member` has ended. Returns what that says
  // about the member. Any thread.
  absl::Status Report(const FleetMember& member, absl::Status status);

  // Whose answer or failure it is that the following are about.
  void NoteSpeaker(std::shared_ptr<FleetMember> member);
  void NoteSuccess();
  // After a call failed: OK to ask again, else what the client is told.
  absl::Status AfterFailure(const absl::Status& failure);

  // `status` with the names of the partition and the server that spoke.
  absl::Status Named(const absl::Status& status) const;

 private:
  absl::Status AwaitNews();
  absl::StatusOr<std::shared_ptr<FleetMember>> Await();

  const CallScope& scope_;
  const int partition_;
  int failures_ = 0;  // not counting each server's first refusal
  std::vector<const FleetMember*> failed_;
  Refusals refusals_;
  std::shared_ptr<FleetMember> speaker_;  // shared with the fleet
};

}  // namespace millrace
