// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/time.h"

#include "absl/time/time.h"

namespace millrace {

// GPR_CLOCK_MONOTONIC is CLOCK_MONOTONIC, and so is std::chrono::steady_clock.
gpr_timespec ToGrpcTime(SteadyTime time) {
  if (time == SteadyTime::InfiniteFuture()) {
    return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  }
  if (time < SteadyTime()) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  const timespec spec = absl::ToTimespec(time - SteadyTime());
  return {spec.tv_sec, static_cast<int32_t>(spec.tv_nsec), GPR_CLOCK_MONOTONIC};
}

SteadyTime FromGrpcTime(gpr_timespec time) {
  const gpr_timespec steady = gpr_convert_clock_type(time, GPR_CLOCK_MONOTONIC);
  if (gpr_time_cmp(steady, gpr_inf_future(GPR_CLOCK_MONOTONIC)) >= 0) {
    return SteadyTime::InfiniteFuture();
  }
  return SteadyTime() + absl::Seconds(steady.tv_sec) +
         absl::Nanoseconds(steady.tv_nsec);
}

}  // namespace millrace
