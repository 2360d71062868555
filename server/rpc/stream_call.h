// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/thread_pool.h"
#include "server/core/core.h"
#include "server/rpc/frame_queue.h"
#include "server/rpc/incoming_call.h"
#include "server/rpc/pool_task.h"

namespace millrace {

// Answers one call with a stream of frames. Never used by two threads at once.
class FrameMaker {
 public:
  virtual ~FrameMaker() = default;

  // Called first, once the request has been read; reserves memory for it.
  // Returns the pool that the first frames are made on, which must have room
  // for a task. An error ends the call. Runs on a gRPC thread and must not
  // block.
  virtual absl::StatusOr<ThreadPool*> Prepare() = 0;

  // Makes the next frame; nullopt at the end. Runs on pools.
  virtual absl::StatusOr<std::optional<::grpc::ByteBuffer>> Next() = 0;
};

// An RPC with one request and a stream of frames.
struct StreamRpc {
  const char* name;      // "Sample"
  ActiveCalls& running;  // the limit on its calls
  // Makes the object that answers a call, which uses the call and must not
  // outlive it.
  std::unique_ptr<FrameMaker> (*make)(IncomingCall& call);
};

// The reactor of one call with a stream of frames: reads the request, has
// frames made on pools, and writes them as the client takes them. Deletes
// itself.
//
// A call runs through StartReading() -> OnReadDone() -> MakeFrames() on a pool
// -> (OnWriteDone(), MakeFrames()) ... -> OnDone(). The FrameQueue decides what
// comes next.
class StreamCall final : public ::grpc::ServerGenericBidiReactor {
 public:
  // `core` and `context` must outlive the call.
  StreamCall(ServerCore& core, const StreamRpc& rpc,
             ::grpc::CallbackServerContext* context);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void SubmitMaking(ThreadPool& pool);
  void MakeFrames();
  absl::StatusOr<std::optional<::grpc::ByteBuffer>> MakeFrame();
  // Times maker_->Next().
  absl::StatusOr<std::optional<::grpc::ByteBuffer>> NextFrame();
  void End(const absl::Status& status);
  void Send(FrameQueue::Actions& actions);

  IncomingCall call_;
  std::unique_ptr<FrameMaker> maker_;
  PoolTask task_;
  FrameQueue queue_;
  ::grpc::ByteBuffer frame_;  // being written
};

}  // namespace millrace
