// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"

namespace millrace {

// Calls `function`, which may block and must not throw, on a thread of its own,
// and returns its result. CANCELLED: the program was interrupted.
// DEADLINE_EXCEEDED: `deadline` passed. After these errors the thread keeps
// running, so `function` must own all that it uses.
template <typename Function>
auto CallInterruptibly(SteadyTime deadline, Function function)
    -> absl::StatusOr<decltype(function())> {
  constexpr std::chrono::milliseconds kSlice(100);
  std::promise<decltype(function())> promise;
  auto result = promise.get_future();
  std::thread([promise = std::move(promise),
               function = std::move(function)]() mutable {
    promise.set_value(function());
  }).detach();
  while (result.wait_for(kSlice) != std::future_status::ready) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (SteadyNow() >= deadline) {
      return absl::DeadlineExceededError("a call took too long");
    }
  }
  return result.get();
}

}  // namespace millrace
