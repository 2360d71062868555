// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/call/refusals.h"
#include "common/grpc/fleet/fleet.h"
#include "server/core/call_scope.h"

namespace millrace {

// Chooses the server to ask for another partition, and decides after a failure
// whether to ask another one.
// Not thread-safe, except that any thread may call Report(). `scope` must
// outlive it.
class PeerPicker {
 public:
  PeerPicker(const CallScope& scope, int partition)
      : scope_(scope), partition_(partition) {}

  // Returns a living server, preferably one that has not failed yet. Waits at
  // most ServerOptions::peer_wait and no longer than the client does. If all
  // have refused, returns the error of Refusals::Pick.
  absl::StatusOr<std::shared_ptr<FleetMember>> Pick();

  // Tells the fleet how a call to `member` ended. Returns the status to
  // attribute to the member (ReplicaFailure::status). Any thread.
  absl::Status Report(const FleetMember& member, const absl::Status& status);

  // Forgets the failures noted so far.
  void NoteSuccess();
  // Notes that a request failed at `member` with `failure`, which Report()
  // returned. Returns whether to send it again.
  bool MaySendAgain(const FleetMember& member, const absl::Status& failure);

 private:
  absl::Status AwaitRefresh();
  absl::StatusOr<std::shared_ptr<FleetMember>> Await();

  const CallScope& scope_;
  const int partition_;
  int failures_ = 0;  // without each server's first refusal
  std::vector<const FleetMember*> failed_;
  Refusals refusals_;
};

}  // namespace millrace
