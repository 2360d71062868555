// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/train/run/log_lines.h"
#include "common/base/process_usage.h"
#include "common/base/steady_time.h"

namespace millrace {

// Measures where the time of an epoch goes on this rank.
// Threads: one at a time.
struct EpochClock {
  double cpu_at_start = ProcessCpuSeconds();
  SteadyTime start = SteadyNow();
  SteadyTime mark = start;
  absl::Duration wait, copy, compute;

  // Starts to time the next part.
  void Mark() { mark = SteadyNow(); }
  // Adds the time since the last Mark() or Lap() to `part`.
  void Lap(absl::Duration& part) {
    const SteadyTime now = SteadyNow();
    part += now - mark;
    mark = now;
  }

  double CpuSeconds() const { return ProcessCpuSeconds() - cpu_at_start; }
  // Fills in the record's times, except those of the CPU and of evaluation.
  void FillIn(MetricsRecord& record) const {
    record.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
    record.wait_seconds = absl::ToDoubleSeconds(wait);
    record.copy_seconds = absl::ToDoubleSeconds(copy);
    record.compute_seconds = absl::ToDoubleSeconds(compute);
  }
};

}  // namespace millrace
