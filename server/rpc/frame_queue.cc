// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/frame_queue.h"

#include <utility>

namespace millrace {
namespace {

// Frames are made until kMaxQueued wait for the client, and again once only
// kRefillAt are left, so that one task makes several.
constexpr size_t kMaxQueued = 4;
constexpr size_t kRefillAt = 2;

}  // namespace

FrameQueue::Actions FrameQueue::Add(
    absl::StatusOr<std::optional<::grpc::ByteBuffer>> frame) {
  MutexLock lock(&mutex_);
  if (!frame.ok()) {
    EndWith(frame.status());
  } else if (!frame->has_value()) {
    EndWith(absl::OkStatus());
  } else {
    waiting_.push_back(**std::move(frame));
  }
  making_ = !ended_ && waiting_.size() < kMaxQueued;
  Actions actions = Decide();
  actions.make = making_;
  return actions;
}

FrameQueue::Actions FrameQueue::OnWritten(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) {
    // The frames that wait are lost too, even if the last one was made.
    if (status_.ok()) status_ = absl::CancelledError("the client is gone");
    ended_ = true;
  }
  return Decide();
}

FrameQueue::Actions FrameQueue::End(const absl::Status& status) {
  MutexLock lock(&mutex_);
  making_ = false;
  EndWith(status);
  return Decide();
}

absl::Status FrameQueue::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

void FrameQueue::EndWith(const absl::Status& status) {
  if (!ended_) status_ = status;
  ended_ = true;
}

FrameQueue::Actions FrameQueue::Decide() {
  Actions actions;
  if (finished_) return actions;
  if (ended_ && !status_.ok()) waiting_.clear();
  if (!writing_ && !waiting_.empty()) {
    actions.write = std::move(waiting_.front());
    waiting_.pop_front();
    writing_ = true;
  }
  if (!making_ && !ended_ && waiting_.size() <= kRefillAt) {
    making_ = actions.make = true;
  }
  if (ended_ && !writing_ && !making_) {
    finished_ = actions.finish = true;
  }
  return actions;
}

}  // namespace millrace
