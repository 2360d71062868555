// SPDX-License-Identifier: Apache-2.0
#include "common/base/mutex.h"

#include "common/base/check.h"

namespace millrace {

void Notification::Notify() {
  MutexLock lock(&mutex_);
  MILLRACE_CHECK(!notified_);
  notified_ = true;
  changed_.NotifyAll();
}

bool Notification::HasBeenNotified() const {
  MutexLock lock(&mutex_);
  return notified_;
}

void Notification::WaitForNotification() const {
  WaitForNotificationWithTimeout(absl::InfiniteDuration());
}

bool Notification::WaitForNotificationWithTimeout(
    absl::Duration timeout) const {
  MutexLock lock(&mutex_);
  return changed_.WaitFor(
      &mutex_, timeout,
      [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return notified_; });
}

}  // namespace millrace
