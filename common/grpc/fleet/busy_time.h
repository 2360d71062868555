// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/base/steady_time.h"

namespace millrace {

// How long to avoid a server that refuses calls because it is overloaded. Not
// thread-safe.
class BusyTime {
 public:
  // Records that the server said, at `now`, that it is busy for `retry_after`
  // (capped at 10 s). If it says so again within a second of the end of that
  // time, it is avoided for at least twice as long as before, up to 2 s.
  void Note(absl::Duration retry_after, SteadyTime now);

  bool IsBusy(SteadyTime now) const;

 private:
  SteadyTime until_ = SteadyTime::InfinitePast();
  absl::Duration last_duration_;  // how long it was avoided the last time
};

}  // namespace millrace
