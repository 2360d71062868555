// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/grpc/hedging.h"
#include "server/call_scope.h"
#include "server/peer_picker.h"

namespace google::protobuf {
class MessageLite;
}  // namespace google::protobuf

namespace millrace {

// One question after the other to the owner of another partition: each goes to
// the replica with the least outstanding bytes, to a second one too when that
// is slow (see common/grpc/hedged_call.h), and to another when it fails.
// Threads: one; Start() does not wait for the answer, Finish() does.
class PeerCall {
 public:
  // `method` is the RPC's full name: "/millrace.v1.Sampler/Expand". `scope`
  // must outlive it.
  PeerCall(const CallScope& scope, int partition, Hedging::Kind kind,
           std::string method);
  // Ends what is in flight.
  ~PeerCall();

  // Sends a request. Waits for a server of the partition, for
  // ServerOptions::peer_wait at most and no longer than the client does.
  absl::Status Start(const ::google::protobuf::MessageLite& request);
  // Waits for the reply to the request started last. Errors of the owner name
  // partition and server.
  absl::Status Finish(::google::protobuf::MessageLite& reply);

  // `status` with the names of the partition and the server that answered.
  absl::Status Named(const absl::Status& status) const;

 private:
  struct Attempt;

  absl::Status Send();

  const CallScope& scope_;
  const int partition_;
  const Hedging::Kind kind_;
  const std::string method_;
  PeerPicker picker_;
  ::grpc::ByteBuffer request_;
  std::unique_ptr<Attempt> attempt_;  // in flight
};

}  // namespace millrace
