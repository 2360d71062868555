// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/grpc/call.h"
#include "common/grpc/fleet.h"
#include "common/grpc/frames.h"

namespace millrace {

// A server-streaming call of Frames, received as raw bytes so that payloads
// are copied once, by the receiver of the frame.
struct FrameStreamOptions {
  std::string method;   // "/millrace.v1.Sampler/Sample"
  std::string request;  // serialized
  std::shared_ptr<FleetMember> member;
  SteadyTime deadline;
  // Takes a frame; an error ends the call with that error. INVALID_ARGUMENT
  // and INTERNAL say what is wrong with the frame: see ProtocolError().
  std::function<absl::Status(const ReceivedFrame&)> on_frame;
  // After the last frame.
  CallDone done;
};

// Starts the call; until its end it counts among the member's outstanding
// bytes, with what is still to come. `on_frame` and `done` run one at a time on
// gRPC threads, possibly before this returns.
std::shared_ptr<Call> StartFrameStream(FrameStreamOptions options);

}  // namespace millrace
