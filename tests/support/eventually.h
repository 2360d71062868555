// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/steady_time.h"

namespace millrace::testing {

// Returns whether `condition` becomes true within a minute, which is far longer
// than a loaded machine needs. For events that notify nobody, such as those in
// gRPC, the kernel or another process; otherwise wait on a Notification.
template <typename Condition>
bool Eventually(Condition condition) {
  const SteadyTime end = SteadyNow() + absl::Minutes(1);
  while (!condition()) {
    if (SteadyNow() > end) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

}  // namespace millrace::testing
