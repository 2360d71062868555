// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/grpc/call.h"
#include "common/grpc/fleet.h"
#include "common/grpc/hedging.h"

namespace millrace {

struct HedgedCallOptions {
  // How a call to one replica reports back.
  struct Events {
    // Asked before anything that has come is believed, and so before a call
    // succeeds. CANCELLED: another replica was faster; the call must end.
    std::function<absl::Status()> on_sign;
    CallDone done;
  };

  Fleet& fleet;
  Hedging& hedging;
  Hedging::Kind kind;
  int partition;
  // When the call fails with DEADLINE_EXCEEDED, even if `start` allows more
  // time.
  SteadyTime deadline;
  // How long the call may bring nothing, at its start or later, before it fails
  // with DEADLINE_EXCEEDED. A time in which this process was stopped does not
  // count.
  absl::Duration patience = absl::InfiniteDuration();
  // Starts the call to a replica.
  std::function<std::shared_ptr<Call>(std::shared_ptr<FleetMember>, Events)>
      start;
  // What becomes of the status that the call to a replica, begun at `start`,
  // has ended with; not asked of one that was too late or given up.
  std::function<absl::Status(const FleetMember&, SteadyTime start,
                             absl::Status)>
      on_end;
  // Gets the outcome and the replica that it came from.
  std::function<void(absl::Status, std::shared_ptr<FleetMember>)> done;
};

// A call to `member`, a replica of a partition. While no sign of an answer has
// come, a second replica is asked too, as Hedging allows; the first to give one
// is listened to, the other call cancelled. A replica that says nothing for
// long, before its first sign or after it, is asked whether it lives
// (Fleet::Suspect), and if not, it is given up: the call goes to another at
// once or, after the first sign, fails with UNAVAILABLE. The functions run on
// threads of gRPC and of the timer, possibly before this returns; nothing of
// the options is touched after `done`.
std::shared_ptr<Call> StartHedgedCall(std::shared_ptr<FleetMember> member,
                                      HedgedCallOptions options);

}  // namespace millrace
