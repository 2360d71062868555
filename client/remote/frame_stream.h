// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/call.h"
#include "common/grpc/fleet/fleet.h"
#include "common/grpc/frames.h"

namespace millrace {

// Options of a server-streaming call of Frames. Frames are received as raw
// bytes, so that payloads are copied only once, by the receiver.
struct FrameStreamOptions {
  std::string method;   // "/millrace.v1.Sampler/Sample"
  std::string request;  // serialised
  std::shared_ptr<FleetMember> member;
  SteadyTime deadline;
  // Receives a frame; an error ends the call with that error. INVALID_ARGUMENT
  // and INTERNAL mean that the frame is wrong: see ProtocolError().
  std::function<absl::Status(const ReceivedFrame&)> on_frame;
  // Runs after the last frame.
  CallDone done;
};

// Starts the call. Until it ends, the bytes still to come count among the
// member's outstanding bytes. `on_frame` and `done` run one at a time on gRPC
// threads, possibly before this returns.
std::shared_ptr<Call> StartFrameStream(FrameStreamOptions options);

}  // namespace millrace
