// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/busy_time.h"

#include <algorithm>

#include "common/base/steady_time.h"

namespace millrace {
namespace {

constexpr absl::Duration kLongest = absl::Seconds(10);
constexpr absl::Duration kLongestGrown = absl::Seconds(2);
constexpr absl::Duration kSoonAgain = absl::Seconds(1);

}  // namespace

void BusyTime::Note(absl::Duration retry_after, SteadyTime now) {
  // Another call, sent before the last report, found the server busy too.
  if (IsBusy(now)) return;
  // Servers do not know how long they will be busy. Doubling the time keeps the
  // number of calls that try again in vain low.
  const bool again = now - until_ < kSoonAgain;
  const absl::Duration grown = again
                                   ? std::min(2 * last_duration_, kLongestGrown)
                                   : absl::ZeroDuration();
  last_duration_ = std::max(std::min(retry_after, kLongest), grown);
  until_ = now + last_duration_;
}

bool BusyTime::IsBusy(SteadyTime now) const { return until_ > now; }

}  // namespace millrace
