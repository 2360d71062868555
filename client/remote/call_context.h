// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/remote/fetch_trace.h"
#include "client/remote/retry.h"
#include "common/graph/manifest.h"
#include "common/grpc/call/hedged_call.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/call/refusals.h"
#include "common/grpc/call/timer.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/frames.h"

namespace millrace {

// Maximum number of ids in one call; keeps requests, and replies of ids, well
// below kMaxMessageBytes.
inline constexpr size_t kMaxIdsPerCall = size_t{1} << 20;

// The id of calls that have none; lives as long as the process.
const std::string& NoRequestId();

// State shared by all calls of a fetch, which it must outlive.
struct CallContext {
  Fleet& fleet;
  const Manifest& manifest;
  absl::Duration timeout;  // of one attempt, at most
  Retry& retry;            // told which partitions answer
  Refusals& refusals;      // told which servers not to ask again
  Hedging& hedging;        // told how fast replies come
  Timer& timer;
  std::atomic<uint64_t>& received;  // counts bytes of frames
  // Of the calls that are started next; see common/grpc/request_id.h.
  const std::string& request_id = NoRequestId();
  // Takes part in what --trace-slow logs; null if that is off.
  FetchTrace* trace = nullptr;
};

// Options of a hedged call for `partition` that starts now.
HedgedCallOptions HedgedOptions(const CallContext& context, Hedging::Kind kind,
                                int partition);

// Counts a frame of a stream from `partition`.
void NoteFrame(const CallContext& context, int partition,
               const ReceivedFrame& frame);

// INTERNAL, naming `member`: what it sent violates the protocol. Such an error
// is not the user's fault and is not retried.
absl::Status ProtocolError(const FleetMember& member,
                           const absl::Status& status);

}  // namespace millrace
