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
#include "common/wire/frame.h"

namespace millrace {

// Maximum payload bytes of the frames that a stream holds: those waiting for
// the client, the one being written and the one being made.
inline constexpr uint64_t kMaxHeldFrameBytes = 6 * kFramePayloadBytes;

// The frames of one stream, between the task that makes them and the client
// that takes them. It decides what happens next and leaves doing it to its
// owner. Frames are made ahead until a few wait for the client, so that a slow
// client only holds up its own call.
//
// States: open -> ended (by the last frame, an error, or the client) ->
// finished. At any time at most one frame is being written, and at most one
// task makes frames; at first, that is the task that the owner is about to
// start.
// Threads: any.
class FrameQueue {
 public:
  // What the owner must do, in this order. Only one thread gets an action, and
  // the stream does not finish before it is done. A task that gets none must
  // not use the owner any more: another thread may have finished the stream
  // already.
  struct Actions {
    // Write this frame, then call OnWritten().
    std::optional<::grpc::ByteBuffer> write;
    // Make more frames: the task that called Add() goes on, otherwise a new one
    // is started.
    bool make = false;
    // Finish the call with status().
    bool finish = false;
  };

  // Adds what the task has made: a frame, nullopt after the last one, or an
  // error, which ends the stream.
  Actions Add(absl::StatusOr<std::optional<::grpc::ByteBuffer>> frame);

  // Reports the end of a write; `ok` means that the client received the frame.
  Actions OnWritten(bool ok);

  // Ends the stream with an error in place of the task, which has not begun and
  // never will.
  Actions End(const absl::Status& status);

  // The status that the stream ended with, once it has ended.
  absl::Status status() const;

 private:
  void EndWith(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Actions Decide() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::deque<::grpc::ByteBuffer> waiting_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool making_ ABSL_GUARDED_BY(mutex_) = true;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // no more frames follow
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
