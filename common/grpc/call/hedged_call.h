// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/call.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/fleet/fleet.h"

namespace millrace {

struct HedgedCallOptions {
  // How a call to one replica reports its progress.
  struct Events {
    // Called on each message before it is used, and so at least once before the
    // call succeeds. CANCELLED: another replica was faster, and the call must
    // end.
    std::function<absl::Status()> on_sign;
    CallDone done;
  };

  Fleet& fleet;
  Hedging& hedging;
  Hedging::Kind kind;
  int partition;
  // The time at which the call fails with DEADLINE_EXCEEDED, even if `start`
  // sets a later deadline.
  SteadyTime deadline;
  // How long the call may go without a message, at its start or later, before
  // it fails with DEADLINE_EXCEEDED. Time during which this process was stopped
  // does not count.
  absl::Duration patience = absl::InfiniteDuration();
  // Starts a call to one replica.
  std::function<std::shared_ptr<Call>(std::shared_ptr<FleetMember>, Events)>
      start;
  // Maps the status of a finished call to one replica, begun at `start`, to the
  // status to report. Not called for calls that lost to another replica or were
  // given up.
  std::function<absl::Status(const FleetMember&, SteadyTime start,
                             absl::Status)>
      on_end;
  // Receives the outcome and the replica that it came from.
  std::function<void(absl::Status, std::shared_ptr<FleetMember>)> done;
};

// Starts a call to `member`, a replica of a partition. If no message arrives
// for some time, a second replica is called too, as far as Hedging allows; the
// first to send a message wins, and the other call is cancelled. If a replica
// is silent for long, before or after its first message, the fleet checks
// whether it is alive (Fleet::Suspect). If it is not, it is given up: before
// its first message, another replica is called at once; after it, the call
// fails with UNAVAILABLE.
// The functions run on threads of gRPC and of the timer, possibly before this
// returns. The options are not used after `done` was called.
std::shared_ptr<Call> StartHedgedCall(std::shared_ptr<FleetMember> member,
                                      HedgedCallOptions options);

}  // namespace millrace
