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

// Calls `function`, which blocks where an interrupt does not reach it and must
// not throw, in a thread of its own, and returns what it returns. CANCELLED as
// soon as the program is interrupted, DEADLINE_EXCEEDED at `deadline`: then the
// thread is left to itself, so `function` must own all that it uses.
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
