// SPDX-License-Identifier: Apache-2.0
#include "server/live_calls.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
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
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  reaper_.join();
}

absl::Status LiveCalls::CheckRoom() const {
  absl::MutexLock lock(&mutex_);
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

absl::Status LiveCalls::Enter(Context* context, absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  MILLRACE_RETURN_IF_ERROR(Room());
  calls_[context] = {.deadline = deadline};
  return absl::OkStatus();
}

void LiveCalls::Leave(Context* context) {
  absl::MutexLock lock(&mutex_);
  calls_.erase(context);
  // gRPC may finish a call within TryCancel; then there is nobody to wait for.
  if (std::this_thread::get_id() == reaper_.get_id()) return;
  const auto left_alone = [this, context]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                              mutex_) { return ending_ != context; };
  mutex_.Await(absl::Condition(&left_alone));
}

void LiveCalls::AwaitClient(Context* context, absl::Time until) {
  absl::MutexLock lock(&mutex_);
  calls_.at(context).client = until;
}

void LiveCalls::ClientMoved(Context* context) {
  AwaitClient(context, absl::InfiniteFuture());
}

void LiveCalls::StartDraining() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
}

bool LiveCalls::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

bool LiveCalls::AwaitNone(absl::Time deadline) const {
  absl::MutexLock lock(&mutex_);
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return calls_.empty();
  };
  return mutex_.AwaitWithDeadline(absl::Condition(&none), deadline);
}

int LiveCalls::count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(calls_.size());
}

bool LiveCalls::IsExpired(Context* context, absl::Time now) const {
  const auto it = calls_.find(context);
  return it != calls_.end() && it->second.Expired(now);
}

void LiveCalls::EndExpired() {
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kReapInterval)) {
    const absl::Time now = absl::Now();
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
    }
  }
}

}  // namespace millrace
