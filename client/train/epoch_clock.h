// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include "client/train/device/work_timer.h"
#include "client/train/minibatch_feeder.h"
#include "client/train/run/log_lines.h"
#include "client/train/run/run_monitor.h"
#include "common/base/process_usage.h"
#include "common/base/steady_time.h"

namespace millrace {

// Measures where the time of an epoch goes on this rank: how long the host
// waits for batches, and how long copies and steps take. On a device, copies
// run beside steps, and both are timed by the device's events, without the
// host's part of making minibatches. What is left of the time is the host's.
// Throws what LibTorch throws. Threads: one at a time.
class EpochClock {
 public:
  // Begins an epoch of a model on `device`, which `feeder` feeds and which must
  // outlive this.
  EpochClock(c10::Device device, MinibatchFeeder& feeder)
      : feeder_(feeder),
        waited_before_(feeder.waited()),
        copied_before_(feeder.copied()),
        compute(device) {}

  // The times so far of waiting, copying and computing, as far as they are
  // known without waiting for the device.
  RunSeconds SoFar() {
    RunSeconds seconds;
    seconds.wait = absl::ToDoubleSeconds(feeder_.waited() - waited_before_);
    seconds.copy =
        absl::ToDoubleSeconds(feeder_.copied_so_far() - copied_before_);
    seconds.compute = absl::ToDoubleSeconds(compute.Passed());
    return seconds;
  }

  double CpuSeconds() const { return ProcessCpuSeconds() - cpu_at_start_; }
  // Fills in the record's times, except those of the CPU and of evaluation.
  void FillIn(MetricsRecord& record) {
    record.seconds = absl::ToDoubleSeconds(SteadyNow() - start_);
    record.wait_seconds =
        absl::ToDoubleSeconds(feeder_.waited() - waited_before_);
    record.copy_seconds =
        absl::ToDoubleSeconds(feeder_.copied() - copied_before_);
    record.compute_seconds = absl::ToDoubleSeconds(compute.Total());
  }

 private:
  const double cpu_at_start_ = ProcessCpuSeconds();
  const SteadyTime start_ = SteadyNow();
  MinibatchFeeder& feeder_;
  const absl::Duration waited_before_, copied_before_;

 public:
  // The steps, without the time in which the host starts copies for later ones.
  // On a device, short waits for the host between two pieces of work count, and
  // so does the wait for the gradients of other ranks.
  WorkTimer compute;
};

}  // namespace millrace
