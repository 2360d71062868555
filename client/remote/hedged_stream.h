// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/remote/call_context.h"
#include "common/grpc/call/call.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/frames.h"

namespace millrace {

struct HedgedStreamOptions {
  CallContext context;
  Hedging::Kind kind;
  int partition;
  std::string method;   // "/millrace.v1.Sampler/Sample"
  std::string request;  // serialised
  // Receives a frame of the replica that won; errors as in FrameStreamOptions.
  std::function<absl::Status(const ReceivedFrame&)> on_frame;
  // Returns an error that says what is missing from a stream that has ended.
  std::function<absl::Status()> check_whole;
  // Receives OK, or a failure as returned by NoteFailure().
  CallDone done;
};

// Starts a stream of frames from a replica of a partition, hedged (see
// common/grpc/call/hedged_call.h).
// `on_frame` and `done` run one at a time on threads of gRPC and of the timer,
// possibly before this returns. `context` is not used after `done`.
// Errors of Refusals::Pick: nothing was started, and `done` never runs.
absl::StatusOr<std::shared_ptr<Call>> StartHedgedStream(
    HedgedStreamOptions options);

}  // namespace millrace
