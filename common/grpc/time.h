// SPDX-License-Identifier: Apache-2.0
// Times as gRPC has them.
#pragma once

#include <grpc/support/time.h>

#include "common/base/steady_time.h"

namespace millrace {

// For ClientContext::set_deadline() and the like. gRPC measures time by the
// same clock, so that a deadline stays where it is when the time of day is set.
gpr_timespec ToGrpcTime(SteadyTime time);

// For ServerContext::raw_deadline(); InfiniteFuture means no deadline.
SteadyTime FromGrpcTime(gpr_timespec time);

}  // namespace millrace
