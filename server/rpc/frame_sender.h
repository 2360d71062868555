// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/thread_pool.h"
#include "common/wire/frame.h"
#include "server/rpc/request_call.h"

namespace millrace {

// Most payload bytes of the frames that a stream holds: those waiting for the
// client, the one being written and the one being made.
inline constexpr uint64_t kMaxHeldFrameBytes = 6 * kFramePayloadBytes;

// The reactor behind Sample and Gather: sends the frames that a subclass makes
// on a pool, and stops making them while a few wait for the client, so that a
// slow client only holds up its own call.
//
// States: reading the request -> started -> (frames) -> ended (by the last
// frame, an error, or the client) -> finished -> done; the subclass then
// deletes itself in OnDone().
class FrameSender : public RequestCall {
 public:
  void OnWriteDone(bool ok) final;

 protected:
  // All frames but the first few are made on `pool`, which must have room for
  // the tasks.
  FrameSender(ServerCore& core, LiveCalls& running,
              ::grpc::CallbackServerContext* context, ThreadPool& pool)
      : RequestCall(core, {core.reading_calls, running}, context),
        pool_(pool) {}

  // Starts making frames on `first_pool`; an error ends the call. Call this
  // once the request has arrived, unless the call ends with End().
  void Start(ThreadPool& first_pool);
  void End(const absl::Status& status) final;

  // Makes the next frame; nullopt at the end. Runs on the pools, never
  // concurrently with itself.
  virtual absl::StatusOr<std::optional<::grpc::ByteBuffer>> NextFrame() = 0;

  // The status that the call ended with; valid in OnDone().
  absl::Status final_status() const;

 private:
  // What to do after the lock is released.
  struct Actions {
    bool write = false;
    bool produce = false;
    bool finish = false;
    bool any() const { return write || produce || finish; }
  };
  Actions Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Execute(Actions actions, ThreadPool& pool);
  void Produce();

  ThreadPool& pool_;

  mutable Mutex mutex_;
  std::deque<::grpc::ByteBuffer> queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool producing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no more frames follow
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  // The frame being written; owned by the thread that set writing_.
  ::grpc::ByteBuffer current_;
};

}  // namespace millrace
