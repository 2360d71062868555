// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace millrace::cuda {

// The pauses between questions to a device or to NCCL, which wake nobody. They
// grow with the time that has passed, so that what is done is noticed within a
// quarter of that, or a millisecond.
class PollPause {
 public:
  void Wait() {
    absl::SleepFor(next_);
    next_ = std::min(next_ * 5 / 4, kLongest);
  }

 private:
  static constexpr absl::Duration kLongest = absl::Milliseconds(1);

  absl::Duration next_ = absl::Microseconds(50);
};

}  // namespace millrace::cuda
