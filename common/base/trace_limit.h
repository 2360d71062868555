// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/log_limit.h"

namespace millrace {

// How many of the slow batches of --trace-slow a process logs, and how many of
// the other slow calls: 10 a second each, so that calls never take the places
// of batches. Both live as long as the process. Any thread may call these.
LogLimit& SlowBatchLimit();
LogLimit& SlowCallLimit();

}  // namespace millrace
