// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/thread_pool.h"
#include "server/core/core.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/pool_task.h"

namespace millrace {

// Answers one call with a single reply. Never used by two threads at once.
class ReplyMaker {
 public:
  virtual ~ReplyMaker() = default;

  // Called first, once the request has been read. Returns the pool that the
  // reply is made on, which must have room for a task, or null if the reply is
  // made immediately, on this thread. An error ends the call. Runs on a gRPC
  // thread and must not block.
  virtual absl::StatusOr<ThreadPool*> Prepare() = 0;

  // Makes the reply; called at most once.
  virtual absl::StatusOr<::grpc::ByteBuffer> Make() = 0;
};

// An RPC with one request and one reply.
struct ReplyRpc {
  const char* name;  // "Expand"
  IncomingCall::Limits limits;
  // Makes the object that answers a call, which uses the call and must not
  // outlive it.
  std::unique_ptr<ReplyMaker> (*make)(IncomingCall& call);
};

// The reactor of one call with a single reply: reads the request, has the reply
// made, and sends it. Deletes itself.
//
// A call runs through StartReading() -> OnReadDone() -> MakeReply() -> End() ->
// OnDone().
class ReplyCall final : public ::grpc::ServerGenericBidiReactor {
 public:
  // `core` and `context` must outlive the call.
  ReplyCall(ServerCore& core, const ReplyRpc& rpc,
            ::grpc::CallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void MakeReply();
  // Times maker_->Make(), and gives what it logs the id of the request.
  absl::StatusOr<::grpc::ByteBuffer> TimedReply();
  void End(const absl::Status& status);

  IncomingCall call_;
  std::unique_ptr<ReplyMaker> maker_;
  PoolTask task_;
  ::grpc::ByteBuffer reply_;
  absl::Status status_;  // what the call ended with
};

}  // namespace millrace
