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
#include "common/grpc/fleet.h"
#include "common/grpc/hedging.h"
#include "common/grpc/refusals.h"

namespace millrace {

// Ids of one call: keeps requests, and replies of ids, well below
// kMaxMessageBytes.
inline constexpr size_t kMaxIdsPerCall = size_t{1} << 20;

// What every call of a fetch needs; outlives all its calls.
struct CallContext {
  Fleet& fleet;
  const Manifest& manifest;
  absl::Duration timeout;           // of one attempt, at most
  Retry& retry;                     // learns who answers
  Refusals& refusals;               // learns which servers not to ask again
  Hedging& hedging;                 // learns how fast
  std::atomic<uint64_t>& received;  // counts the bytes of frames
};

// By when a call must be done, and how long it may say nothing.
struct CallTimes {
  SteadyTime deadline;
  absl::Duration patience;
};
// The times of a call for `partition` that starts now.
CallTimes TimesOf(const CallContext& context, int partition);

// INTERNAL, naming `member`: what it sent is not what the protocol says. Such
// an error is nobody's usage and is not repeated.
absl::Status ProtocolError(const FleetMember& member,
                           const absl::Status& status);

// What a call to `member` for `partition`, begun at `start`, failed with, as
// Retry wants it: an attempt that ran out of time may be repeated, errors name
// the partition, a message that is too large is final. What another server may
// take (IsServedElsewhere) is UNAVAILABLE at this one.
// Tells the fleet and the refusals, unless the member reports another
// partition's failure, and Retry of a call that ran out of time.
absl::Status NoteFailure(const CallContext& context, const FleetMember& member,
                         int partition, SteadyTime start,
                         const absl::Status& status);

}  // namespace millrace
