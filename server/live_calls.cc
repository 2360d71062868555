// SPDX-License-Identifier: Apache-2.0
#include "server/live_calls.h"

#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// How late a call may be ended that outlived its deadline.
constexpr absl::Duration kReapInterval = absl::Seconds(1);

}  // namespace

LiveCalls::LiveCalls(int max_calls, End end)
    : max_calls_(static_cast<size_t>(max_calls)),
      end_(std::move(end)),
      reaper_([this] { EndExpired(); }) {}

LiveCalls::~LiveCalls() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    stop_.NotifyOne();
  }
  reaper_.join();
}

absl::Status LiveCalls::CheckRoom() const {
  MutexLock lock(&mutex_);
  return Room();
}

absl::Status LiveCalls::Room() const {
  if (draining_) {
    return absl::UnavailableError(
        "the server is draining\nask another replica, or wait for it to come "
        "back");
  }
  if (calls_.size() >= max_calls_) {
    return WithErrorInfo(
        absl::ResourceExhaustedError(
            StrCat("the server is busy: ", calls_.size(), " of at most ",
                   max_calls_, " calls are running")),
        {.partition = std::nullopt, .retry_after = absl::Milliseconds(50)});
  }
  return absl::OkStatus();
}

absl::Status LiveCalls::Enter(Context* context, SteadyTime deadline) {
  MutexLock lock(&mutex_);
  MILLRACE_RETURN_IF_ERROR(Room());
  calls_[context] = {.deadline = deadline};
  return absl::OkStatus();
}

void LiveCalls::Leave(Context* context) {
  MutexLock lock(&mutex_);
  calls_.erase(context);
  if (calls_.empty()) left_.NotifyAll();
  // gRPC may finish a call within TryCancel; then there is nobody to wait for.
  if (std::this_thread::get_id() == reaper_.get_id()) return;
  const auto left_alone = [this, context]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                              mutex_) { return ending_ != context; };
  left_.Wait(&mutex_, left_alone);
}

void LiveCalls::AwaitClient(Context* context, SteadyTime until) {
  MutexLock lock(&mutex_);
  calls_.at(context).client = until;
}

void LiveCalls::ClientMoved(Context* context) {
  AwaitClient(context, SteadyTime::InfiniteFuture());
}

void LiveCalls::StartDraining() {
  MutexLock lock(&mutex_);
  draining_ = true;
}

bool LiveCalls::draining() const {
  MutexLock lock(&mutex_);
  return draining_;
}

bool LiveCalls::AwaitNone(SteadyTime deadline) const {
  MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.empty();
  };
  return left_.WaitUntil(&mutex_, deadline, none);
}

int LiveCalls::count() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(calls_.size());
}

bool LiveCalls::IsExpired(Context* context, SteadyTime now) const {
  const auto it = calls_.find(context);
  return it != calls_.end() && it->second.Expired(now);
}

void LiveCalls::EndExpired() {
  MutexLock lock(&mutex_);
  const auto stopping = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  };
  while (!stop_.WaitFor(&mutex_, kReapInterval, stopping)) {
    const SteadyTime now = SteadyNow();
    std::vector<Context*> expired;
    for (const auto& [context, times] : calls_) {
      if (times.Expired(now)) expired.push_back(context);
    }
    for (Context* context : expired) {
      // It may have left meanwhile, and a new call have taken its address.
      if (!IsExpired(context, now)) continue;
      ending_ = context;
      mutex_.Unlock();
      end_(context);
      mutex_.Lock();
      ending_ = nullptr;
      left_.NotifyAll();
    }
  }
}

}  // namespace millrace
