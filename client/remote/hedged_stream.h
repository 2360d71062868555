// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/remote/call_context.h"
#include "client/remote/frame_receiver.h"
#include "common/grpc/call/call.h"
#include "common/grpc/call/hedging.h"

namespace millrace {

struct StreamRequest {
  Hedging::Kind kind;
  int partition;
  std::string method;          // "/millrace.v1.Sampler/Sample"
  ::grpc::ByteBuffer message;  // see SerializeMessage()
};

// Starts a stream of frames from a replica of a partition, hedged (see
// common/grpc/call/hedged_call.h). `receiver`, shared with the calls to the
// replicas, gets only the frames of the replica that wins; `done` gets OK, or a
// failure as ClassifyFailure() describes it.
// They are called one at a time on threads of gRPC and of the timer, possibly
// before this returns. `context` is not used after `done`.
// Fails like Refusals::Pick: nothing was started, and `done` never runs.
absl::StatusOr<std::shared_ptr<Call>> StartHedgedStream(
    const CallContext& context, StreamRequest request,
    std::shared_ptr<FrameReceiver> receiver, CallDone done);

}  // namespace millrace
