// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"
#include "common/base/steady_time.h"

namespace millrace {

// How long to spare a server that refuses calls for lack of room.
// Threads: one at a time.
class BusyTime {
 public:
  // It said at `now` that it is busy for `retry_after` (10 s at most are
  // believed). If it says so again within a second of the end of that time,
  // it is spared for at least twice as long, up to 2 s.
  void Note(absl::Duration retry_after, SteadyTime now);

  bool IsBusy(SteadyTime now) const;

 private:
  SteadyTime until_ = SteadyTime::InfinitePast();
  absl::Duration whole_;  // of the last time
};

}  // namespace millrace
