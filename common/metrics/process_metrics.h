// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/metrics/families.h"

namespace millrace {

// The metrics that every program has: millrace_build_info, with the program's
// version and whether it was built for GPUs, and Prometheus' standard ones of a
// process (process_cpu_seconds_total, process_open_fds, ...), read now. Any
// thread may call it; it takes well below a millisecond.
MetricFamilies ProcessMetrics();

}  // namespace millrace
