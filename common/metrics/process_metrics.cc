// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/process_metrics.h"

#include <vector>

#include "common/base/process_usage.h"

namespace millrace {

MetricFamilies ProcessMetrics() {
  const ProcessState state = ReadProcessState();
  const std::vector<MetricLabel> build = {
      {"version", MILLRACE_VERSION},
      {"cuda", MILLRACE_HAS_CUDA ? "yes" : "no"}};
  return {
      GaugeFamily("millrace_build_info",
                  "The program's version, and whether it was built for GPUs.",
                  {{.labels = build, .value = 1}}),
      CounterFamily("process_cpu_seconds_total",
                    "CPU time, user and system, in seconds.",
                    ProcessCpuSeconds()),
      GaugeFamily("process_open_fds", "Open file descriptors.",
                  OpenFileDescriptors()),
      GaugeFamily("process_max_fds", "Limit on open file descriptors.",
                  MaxFileDescriptors()),
      GaugeFamily("process_virtual_memory_bytes", "Virtual memory.",
                  state.virtual_bytes),
      GaugeFamily("process_resident_memory_bytes",
                  "Resident memory, including pages of mapped files.",
                  state.resident_bytes),
      GaugeFamily("process_start_time_seconds",
                  "When the process started (Unix time).",
                  ProcessStartUnixSeconds()),
      GaugeFamily("process_threads", "Threads of the process.", state.threads)};
}

}  // namespace millrace
