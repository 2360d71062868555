// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"

namespace millrace {

// What the error of a call means for the replica that was asked, to clients and
// to other servers alike.
struct ReplicaFailure {
  // Whether this replica refuses what another one may accept
  // (IsServedElsewhere).
  bool refused = false;
  // UNAVAILABLE, without ErrorInfo, if the replica refused, or if it is
  // stopping and has ended the call: then another one can be asked. Otherwise
  // the error itself. The message does not name the replica.
  absl::Status status;
};

// `error` is that of a call which the caller has not cancelled, so CANCELLED
// means that the replica is stopping.
ReplicaFailure AssessFailure(const absl::Status& error);

}  // namespace millrace
