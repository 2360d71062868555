// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/remote/retry.h"
#include "common/base/steady_time.h"
#include "common/graph/manifest.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/call/refusals.h"
#include "common/grpc/fleet/fleet.h"

namespace millrace {

// Most ids in one call; keeps requests, and replies of ids, well below
// kMaxMessageBytes.
inline constexpr size_t kMaxIdsPerCall = size_t{1} << 20;

// State shared by all calls of a fetch, which it must outlive.
struct CallContext {
  Fleet& fleet;
  const Manifest& manifest;
  absl::Duration timeout;           // of one attempt, at most
  Retry& retry;                     // told which partitions answer
  Refusals& refusals;               // told which servers not to ask again
  Hedging& hedging;                 // told how fast replies come
  std::atomic<uint64_t>& received;  // counts bytes of frames
};

// When a call must be done, and how long it may receive nothing.
struct CallTimes {
  SteadyTime deadline;
  absl::Duration patience;
};
// The times of a call for `partition` that starts now.
CallTimes TimesOf(const CallContext& context, int partition);

// INTERNAL, naming `member`: what it sent violates the protocol. Such an error
// is not the user's fault and is not retried.
absl::Status ProtocolError(const FleetMember& member,
                           const absl::Status& status);

// Classifies a failure of a call to `member` for `partition` that began at
// `start`, and returns it in the form that Retry expects: it names the
// partition, a timeout becomes retryable, a message that is too large is final,
// and what another server may serve (IsServedElsewhere) is UNAVAILABLE at this
// one.
// Also informs the fleet and `refusals`, unless the member reports another
// partition's failure, and `retry` if the call timed out.
absl::Status NoteFailure(const CallContext& context, const FleetMember& member,
                         int partition, SteadyTime start,
                         const absl::Status& status);

}  // namespace millrace
