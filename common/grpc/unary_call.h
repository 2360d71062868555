// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/grpc/call.h"
#include "common/grpc/fleet.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace millrace {

// A call with one request and one reply, whose request may be sent to several
// replicas without being made again.
struct UnaryCallOptions {
  std::string method;          // "/millrace.v1.Sampler/Expand"
  ::grpc::ByteBuffer request;  // see SerializeMessage()
  std::shared_ptr<FleetMember> member;
  std::unique_ptr<::grpc::ClientContext> context;  // with the deadline
  // Takes the reply; an error ends the call with that error.
  std::function<absl::Status(::grpc::ByteBuffer&)> on_reply;
  CallDone done;
};

// Starts the call; until its end it counts among the member's outstanding
// bytes. `on_reply` and `done` run one after the other on a gRPC thread,
// possibly before this returns.
std::shared_ptr<Call> StartUnaryCall(UnaryCallOptions options);

// A message as it is sent; copies of the buffer share its bytes.
::grpc::ByteBuffer SerializeMessage(
    const ::google::protobuf::MessageLite& message);
// Clears the bytes. INTERNAL: they are not such a message.
absl::Status ParseMessage(::grpc::ByteBuffer& bytes,
                          ::google::protobuf::MessageLite& message);

}  // namespace millrace
