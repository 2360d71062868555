// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace millrace::cuda {

// Calls `function`, which may block and must not throw, on a thread of its own,
// and returns whether it has ended within `timeout`. If it has not, the thread
// keeps running, so `function` must own all that it uses.
template <typename Function>
bool CallInTime(absl::Duration timeout, Function function) {
  const auto ended = std::make_shared<Notification>();
  std::thread([ended, function = std::move(function)]() mutable {
    function();
    ended->Notify();
  }).detach();
  return ended->WaitForNotificationWithTimeout(timeout);
}

}  // namespace millrace::cuda
