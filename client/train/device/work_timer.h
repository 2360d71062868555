// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "common/base/steady_time.h"

namespace millrace {

// Adds up how long pieces of work take: on the CPU by the host's clock, on
// another device by its own, since it works on after the calls that start it.
// Throws what LibTorch throws.
// Threads: one at a time.
class WorkTimer {
 public:
  explicit WorkTimer(c10::Device device) : device_(device) {}

  // Mark a piece of work in the device's current stream. One that is not
  // stopped does not count.
  void Start();
  void Stop();
  // The sum of all pieces so far, for which it waits.
  absl::Duration Total();
  // The sum of the pieces that are known to have ended; does not wait.
  absl::Duration Passed();

 private:
  struct Piece {
    c10::Event start, stop;
  };
  void AddOldest();

  const c10::Device device_;
  SteadyTime start_;                       // on the CPU
  std::optional<c10::Event> start_event_;  // on other devices
  std::deque<Piece> pieces_;               // not added yet; on other devices
  absl::Duration total_;
};

}  // namespace millrace
