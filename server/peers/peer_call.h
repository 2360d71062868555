// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/grpc/call/call.h"
#include "common/grpc/call/hedging.h"
#include "common/grpc/fleet/fleet.h"
#include "server/core/call_scope.h"
#include "server/peers/peer_picker.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace millrace {

// Makes calls, one after another, to the owner of another partition. Each goes
// to the replica with the fewest outstanding bytes; to a second one as well if
// the first is slow (see common/grpc/call/hedged_call.h); and to another one if
// it fails. Start() does not wait for the answer; Finish() does.
// Not thread-safe.
class PeerCall {
 public:
  // `method` is the RPC's full name, such as "/millrace.v1.Sampler/Expand".
  // `scope` must outlive this object.
  PeerCall(const CallScope& scope, int partition, Hedging::Kind kind,
           std::string method);
  // Cancels the call in flight, if any.
  ~PeerCall();

  // Sends a request. Waits for a server of the partition, at most
  // ServerOptions::peer_wait and no longer than the client does.
  absl::Status Start(const ::google::protobuf::MessageLite& request);
  // Waits for the reply to the latest request. Errors from the owner name the
  // partition and the server.
  absl::Status Finish(::google::protobuf::MessageLite& reply);

  // Adds the names of the partition and of the answering server to `status`.
  absl::Status Named(const absl::Status& status) const;

  // The server that answered the latest request; empty before Finish().
  std::string answered_by() const;

 private:
  class Attempt;

  absl::Status Send();

  const CallScope& scope_;
  const int partition_;
  const Hedging::Kind kind_;
  const std::string method_;
  const std::string rpc_;  // the last part of method_, such as "Expand"
  PeerPicker picker_;
  ::grpc::ByteBuffer request_;
  // In flight, or null; both are shared with the calls to the replicas.
  std::shared_ptr<Attempt> attempt_;
  std::shared_ptr<Call> in_flight_;
  // The replica that ended the latest attempt; shared with the fleet.
  std::shared_ptr<FleetMember> answered_by_;
};

}  // namespace millrace
