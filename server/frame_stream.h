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
#include "server/request_call.h"

namespace millrace {

// Payload of the frames that a stream holds at most: those that wait for the
// client, the one being written and the one being made.
inline constexpr uint64_t kMaxHeldFrameBytes = 6 * kFramePayloadBytes;

// The reactor under Sample and Gather: sends the frames that a subclass makes
// on a pool, and makes no more while a few wait for the client, so that a
// slow client stops its own call only.
//
// States: reading the request -> started -> (frames) -> ended (by the last
// frame, an error, or the client) -> finished -> done, when the subclass
// deletes itself in OnDone().
class FrameStream : public RequestCall {
 public:
  void OnWriteDone(bool ok) final;

 protected:
  // Frames after the first few are made in `pool`, which must take them.
  FrameStream(ServerCore& core, LiveCalls& running,
              ::grpc::CallbackServerContext* context, ThreadPool& pool)
      : RequestCall(core, {core.reading_calls, running}, context),
        pool_(pool) {}

  // Starts making frames in `first_pool`; an error ends the call. To be called
  // once there is a request, unless End() is.
  void Start(ThreadPool& first_pool);
  void End(const absl::Status& status) final;

  // Makes the next frame; absent at the end. Runs in the pools, one call at a
  // time.
  virtual absl::StatusOr<std::optional<::grpc::ByteBuffer>> NextFrame() = 0;

  // How the call ended; valid in OnDone().
  absl::Status final_status() const;

 private:
  // What to do once the lock is released.
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
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no more frames will come
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  // Being written; owned by the thread that set writing_.
  ::grpc::ByteBuffer current_;
};

}  // namespace millrace
