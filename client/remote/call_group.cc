// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_group.h"

#include <utility>

#include "common/base/interrupt.h"
#include "common/base/mutex.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// How often waits check for an interrupt or for the source being closed.
constexpr absl::Duration kStopCheckInterval = absl::Milliseconds(200);

}  // namespace

void CallGroup::Add(const Start& start) {
  AwaitRunning(kMaxRunning - 1);
  const size_t index = added_++;
  {
    MutexLock lock(&mutex_);
    succeeded_.push_back(false);
    if (cancelled_ || !final_.ok()) return;
    ++running_;
  }
  auto call =
      start([this, index](const absl::Status& status) { Done(index, status); });
  if (!call.ok()) return Done(index, call.status());
  calls_.emplace(index, *std::move(call));
}

absl::Status CallGroup::Wait() {
  AwaitRunning(0);
  if (cancelled_) return absl::CancelledError("the calls were cancelled");
  MutexLock lock(&mutex_);
  return final_.ok() ? first_ : final_;
}

bool CallGroup::succeeded(size_t index) const {
  MutexLock lock(&mutex_);
  return succeeded_[index];
}

void CallGroup::Done(size_t index, const absl::Status& status) {
  MutexLock lock(&mutex_);
  succeeded_[index] = status.ok();
  first_.Update(status);
  if (!status.ok() && !IsRetryable(status)) final_.Update(status);
  ended_.push_back(index);
  --running_;
  ended_one_.NotifyOne();
}

// Waits until at most `max_running` calls run, and releases those that ended.
void CallGroup::AwaitRunning(size_t max_running) {
  const auto few = [this, max_running]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_ <= max_running;
  };
  std::vector<size_t> ended;
  for (bool waiting = true; waiting;) {
    {
      MutexLock lock(&mutex_);
      waiting = !ended_one_.WaitFor(&mutex_, kStopCheckInterval, few);
      if (!waiting) ended.swap(ended_);
    }
    if (closing_.HasBeenNotified() || Interrupted()) Cancel();
  }
  for (const size_t index : ended) calls_.erase(index);
}

void CallGroup::Cancel() {
  cancelled_ = true;
  for (const auto& [index, call] : calls_) call->Cancel();
}

}  // namespace millrace
