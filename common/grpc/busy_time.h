// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace millrace {

// For how long a server is spared that refuses calls for want of room.
// Threads: one at a time.
class BusyTime {
 public:
  // It said at `now` that it is busy for `retry_after` (10 s at most are
  // believed). Of one that says so again within a second of its last time:
  // for at least twice as long as then, up to 2 s.
  void Note(absl::Duration retry_after, absl::Time now);

  // Not for ever when somebody sets the clock back.
  bool IsBusy(absl::Time now) const;

 private:
  absl::Time until_ = absl::InfinitePast();
  absl::Duration whole_;  // of the last time
};

}  // namespace millrace
