// SPDX-License-Identifier: Apache-2.0
// Conversions between SteadyTime and gRPC's times.
#pragma once

#include <grpc/support/time.h>

#include "common/base/steady_time.h"

namespace millrace {

// Returns a time for ClientContext::set_deadline() and the like. Uses gRPC's
// monotonic clock, so that setting the time of day does not move a deadline.
gpr_timespec ToGrpcTime(SteadyTime time);

// Converts ServerContext::raw_deadline(); InfiniteFuture means no deadline.
SteadyTime FromGrpcTime(gpr_timespec time);

}  // namespace millrace
