// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/grpc/call/call.h"
#include "common/grpc/fleet/fleet.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace millrace {

// A call with one request and one reply. The request may be sent to several
// replicas without being serialised again.
struct UnaryCallOptions {
  std::string method;                   // such as "/millrace.v1.Sampler/Expand"
  ::grpc::ByteBuffer request;           // see SerializeMessage()
  std::shared_ptr<FleetMember> member;  // shared with the fleet
  std::unique_ptr<::grpc::ClientContext> context;  // with its deadline set
  // Receives the reply, once `observer` has accepted it; an error that it
  // returns becomes the call's.
  std::function<absl::Status(::grpc::ByteBuffer&)> on_reply;
  std::shared_ptr<CallObserver> observer;  // shared with the caller
};

// Starts the call, which counts among the member's outstanding bytes until its
// end. `observer` and `on_reply` run on a gRPC thread, possibly before this
// returns.
std::shared_ptr<Call> StartUnaryCall(UnaryCallOptions options);

// Serialises a message. Copies of the buffer share its bytes.
::grpc::ByteBuffer SerializeMessage(
    const ::google::protobuf::MessageLite& message);
// Parses a message and clears `bytes`. INTERNAL: they are not such a message.
absl::Status ParseMessage(::grpc::ByteBuffer& bytes,
                          ::google::protobuf::MessageLite& message);

}  // namespace millrace
