// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "client/remote/call_context.h"
#include "common/base/steady_time.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/fleet/replicas.h"

namespace millrace {

// A call to one replica.
struct ReplicaCall {
  const FleetMember& member;
  int partition;  // the one that was asked for
  SteadyTime start;
};

// Why a call failed.
struct CallFailure {
  enum class Kind {
    kRefused,  // this server refuses what another one may accept
    kTimeout,
    kOtherLost,  // the server waited in vain for a server of another partition
    kTransient,  // retryable for any other reason
    kFinal,
  };
  Kind kind;
  int partition;  // whose failure it is
  // The failure in the form that Retry expects: if it is retryable, it names
  // the partition.
  absl::Status status;
};

// Says what the error `status` of a call, seen at `now`, means. A timeout
// becomes retryable, a message that is too large is final, and what another
// server may serve (IsServedElsewhere) is UNAVAILABLE at this one. `replicas`
// are asked only whether they know a working replica of another partition.
CallFailure ClassifyFailure(Replicas& replicas, const ReplicaCall& call,
                            const absl::Status& status, SteadyTime now);

// Call at the end of every call that ended with `status`. Tells the fleet,
// `refusals` and `retry` about a failure, as far as it concerns them, and
// returns OK or CallFailure::status.
absl::Status NoteEnd(const CallContext& context, const ReplicaCall& call,
                     const absl::Status& status);

}  // namespace millrace
