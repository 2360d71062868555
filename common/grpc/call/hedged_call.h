// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/call.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/call/timer.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/fleet/replicas.h"

namespace millrace {

// What a hedged call sends, and what becomes of it. The functions run on the
// threads of gRPC and of the timer, and must not block. Send() and Judge() may
// run at the same time; Finish() comes after all others.
class HedgedRequest {
 public:
  virtual ~HedgedRequest() = default;

  // Sends the request to one replica. `observer` may be called before this
  // returns. A message that it does not object to belongs to the replica that
  // answers the request; there is only one such replica.
  virtual std::shared_ptr<Call> Send(
      std::shared_ptr<FleetMember> replica,
      std::shared_ptr<CallObserver> observer) = 0;

  // Maps the status of a finished call to one replica, begun at `start`, to the
  // status to report. Not called for calls that lost to another replica, were
  // abandoned or ended because of Cancel(), which say nothing about a replica.
  virtual absl::Status Judge(const FleetMember& replica, SteadyTime start,
                             absl::Status status) = 0;

  // Receives the outcome and the replica that it came from.
  virtual void Finish(absl::Status status,
                      std::shared_ptr<FleetMember> replica) = 0;
};

struct HedgedCallOptions {
  Replicas& replicas;  // these three outlive the call
  Hedging& hedging;
  Timer& timer;
  Hedging::Kind kind;
  int partition;
  // The time at which the call fails with DEADLINE_EXCEEDED, even if Send()
  // sets a later deadline.
  SteadyTime deadline;
  // How long the call may go without a message, at its start or later, before
  // it fails with DEADLINE_EXCEEDED. Time during which this process was stopped
  // does not count.
  absl::Duration max_silence = absl::InfiniteDuration();
};

// Sends `request` to `member`, a replica of a partition. If no message arrives
// for some time, it is sent to a second replica too, as far as Hedging allows;
// the first to send a message wins, and the other call is cancelled. If a
// replica is silent for a long time, before or after its first message,
// Replicas::Suspect finds out whether it is alive. If it is not, it is
// abandoned: before its first message, another replica is asked at once; after
// it, the call fails with UNAVAILABLE.
// Parts of `request` may run before this returns. It is not used after its
// Finish().
std::shared_ptr<Call> StartHedgedCall(const HedgedCallOptions& options,
                                      std::shared_ptr<FleetMember> member,
                                      std::shared_ptr<HedgedRequest> request);

}  // namespace millrace
