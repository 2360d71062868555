// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/frame_sender.h"

#include <utility>

#include "common/base/mutex.h"
#include "common/grpc/status.h"
#include "server/core/call_scope.h"

namespace millrace {
namespace {

// Frames are made until kMaxQueued wait for the client, and again once only
// kRefillAt are left, so that one task makes several.
constexpr size_t kMaxQueued = 4;
constexpr size_t kRefillAt = 2;

}  // namespace

void FrameSender::Start(ThreadPool& first_pool) {
  {
    MutexLock lock(&mutex_);
    producing_ = true;
  }
  Execute({.produce = true}, first_pool);
}

void FrameSender::End(const absl::Status& status) {
  Actions actions;
  {
    MutexLock lock(&mutex_);
    producing_ = false;
    if (!ended_) status_ = status;
    ended_ = true;
    actions = Decide();
  }
  Execute(actions, pool_);
}

absl::Status FrameSender::final_status() const {
  MutexLock lock(&mutex_);
  return status_;
}

FrameSender::Actions FrameSender::Decide() {
  Actions actions;
  if (finished_) return actions;
  if (ended_ && !status_.ok()) queue_.clear();
  if (!writing_ && !queue_.empty()) {
    current_ = std::move(queue_.front());
    queue_.pop_front();
    writing_ = actions.write = true;
  }
  if (!producing_ && !ended_ && queue_.size() <= kRefillAt) {
    producing_ = actions.produce = true;
  }
  if (ended_ && !writing_ && !producing_ && queue_.empty()) {
    finished_ = actions.finish = true;
  }
  return actions;
}

// Once StartWrite() has been called, another thread may finish and delete the
// call, unless `produce` or `finish` is set: those are left to this thread
// alone.
void FrameSender::Execute(Actions actions, ThreadPool& pool) {
  if (actions.write) {
    AwaitClient();
    StartWrite(&current_);
  }
  if (actions.produce) return Submit(pool, [this] { Produce(); });
  if (actions.finish) Finish(ToGrpcStatus(final_status()));
}

void FrameSender::Produce() {
  ThreadPool& pool = pool_;
  bool more = true;
  while (more) {
    const absl::Status wanted = CheckWanted(context());
    absl::StatusOr<std::optional<::grpc::ByteBuffer>> frame =
        wanted.ok() ? NextFrame() : wanted;
    if (!frame.ok()) frame = core().NoteDamage(frame.status());
    Actions actions;
    {
      MutexLock lock(&mutex_);
      if (!frame.ok()) {
        if (!ended_) status_ = frame.status();
        ended_ = true;
      } else if (!frame->has_value()) {
        ended_ = true;
      } else if (!ended_) {
        queue_.push_back(**std::move(frame));
      }
      more = !ended_ && queue_.size() < kMaxQueued;
      producing_ = more;
      actions = Decide();
    }
    // If nothing is left to do here, the call may be gone already: the thread
    // that ends the last write finishes it.
    if (actions.any()) Execute(actions, pool);
  }
}

void FrameSender::OnWriteDone(bool ok) {
  ClientMoved();
  Actions actions;
  {
    MutexLock lock(&mutex_);
    writing_ = false;
    current_.Clear();
    if (!ok && !ended_) {
      ended_ = true;
      status_ = absl::CancelledError("the client is gone");
    } else if (!ok && status_.ok()) {
      status_ = absl::CancelledError("the client is gone");
    }
    actions = Decide();
  }
  Execute(actions, pool_);
}

}  // namespace millrace
