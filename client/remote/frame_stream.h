// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "client/remote/frame_receiver.h"
#include "common/base/steady_time.h"
#include "common/grpc/call/call.h"
#include "common/grpc/fleet/fleet.h"

namespace millrace {

// Options of a server-streaming call of Frames. Frames are received as raw
// bytes, so that payloads are copied only once, by the receiver.
struct FrameStreamOptions {
  std::string method;                   // "/millrace.v1.Sampler/Sample"
  ::grpc::ByteBuffer request;           // see SerializeMessage()
  std::shared_ptr<FleetMember> member;  // shared with the fleet
  std::string request_id = {};
  SteadyTime deadline;
  // Takes the frames that `observer` has accepted; shared with the other calls
  // of the same hedged call.
  std::shared_ptr<FrameReceiver> receiver;
  std::shared_ptr<CallObserver> observer;  // shared with the caller
};

// Starts the call. Until it ends, the bytes still to come count among the
// member's outstanding bytes. `receiver` and `observer` are called on gRPC
// threads, one at a time, possibly before this returns.
std::shared_ptr<Call> StartFrameStream(FrameStreamOptions options);

}  // namespace millrace
