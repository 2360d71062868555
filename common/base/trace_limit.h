// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/log_limit.h"

namespace millrace {

// How many of the slow calls and batches of --trace-slow a process logs: 10 a
// second. Lives as long as the process. Any thread may call it.
LogLimit& TraceLimit();

}  // namespace millrace
