// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/train/run/run_log.h"
#include "common/base/process_usage.h"
#include "common/base/steady_time.h"

namespace millrace {

// Adds up the parts of an epoch's training on this rank.
// Threads: one at a time.
struct EpochClock {
  double cpu_at_start = ProcessCpuSeconds();
  SteadyTime start = SteadyNow();
  SteadyTime mark = start;
  absl::Duration wait, copy, compute;

  // What comes next counts from here on.
  void Mark() { mark = SteadyNow(); }
  // Books the time since the last Mark() or Lap().
  void Lap(absl::Duration& part) {
    const SteadyTime now = SteadyNow();
    part += now - mark;
    mark = now;
  }

  double CpuSeconds() const { return ProcessCpuSeconds() - cpu_at_start; }
  // The times of the record, but for CPU and evaluation.
  void FillIn(MetricsRecord& record) const {
    record.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
    record.wait_seconds = absl::ToDoubleSeconds(wait);
    record.copy_seconds = absl::ToDoubleSeconds(copy);
    record.compute_seconds = absl::ToDoubleSeconds(compute);
  }
};

}  // namespace millrace
