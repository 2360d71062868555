// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {

// Decides whether and when to repeat a failed attempt: with jittered
// exponential back-off from 50 ms to 1 s, until some partition has not answered
// for `partition_wait`. That time starts at the partition's first failure, or
// at its last answer, or at the start of a call that waited for it. Servers
// that are only overloaded, and those that answer but repeatedly break off, get
// 10 minutes. Logs a warning when a partition has been waited for 1 s, then at
// most every 5 s per process.
// Threads: any; After() from one thread at a time.
class Retry {
 public:
  // Minimum timeout of an attempt; a wait may overrun by this much.
  static constexpr absl::Duration kMinTimeout = absl::Seconds(1);

  explicit Retry(absl::Duration partition_wait)
      : partition_wait_(partition_wait) {}

  // How long a call that starts now may take: `timeout`, capped by what remains
  // of the wait for a partition or, while none is waited for, by three quarters
  // of partition_wait, so that another replica can still be asked; at least
  // kMinTimeout. Not capped once a call has timed out while its answer was
  // arriving.
  absl::Duration TimeoutOf(absl::Duration timeout, SteadyTime now) const;

  // How long a call for the partition may receive nothing, by the same rule.
  absl::Duration MaxSilenceOf(int partition, SteadyTime now) const;

  // Records that a call for the partition received something, which restarts
  // its wait.
  void NoteAnswer(int partition, SteadyTime now);

  // Records that a call for the partition that began at `start` received
  // nothing for too long, or timed out.
  void NoteSilence(int partition, SteadyTime start);
  // Records that a call for another partition that began at `start` has waited
  // for this one.
  void NoteWait(int partition, SteadyTime start);

  // How long to wait before the next attempt; an error means to give up:
  // `failure` itself if it is not retryable, else UNAVAILABLE, which says how
  // long the partition was waited for or kept breaking off, or
  // RESOURCE_EXHAUSTED if an overload does not end. The failure's ErrorInfo
  // names the partition.
  absl::StatusOr<absl::Duration> After(const absl::Status& failure,
                                       SteadyTime now);

 private:
  struct PartitionState {
    SteadyTime answered = SteadyTime::InfinitePast();
    // First failures since `answered`.
    SteadyTime unavailable = SteadyTime::InfiniteFuture();
    SteadyTime overloaded = SteadyTime::InfiniteFuture();
  };

  // When After() gives up, after what time, and whether the reason is that the
  // batch never completes although the partition answers now and then.
  struct End {
    SteadyTime time;
    absl::Duration patience;
    bool broken_off;
  };
  End EndOf(int partition, bool overload, SteadyTime now);
  // The timeout of a call that starts at `now`, as part of a wait that began at
  // `unavailable`.
  absl::Duration ShareOf(SteadyTime unavailable, SteadyTime now) const;

  const absl::Duration partition_wait_;

  mutable Mutex mutex_;
  std::map<int, PartitionState> partitions_ ABSL_GUARDED_BY(mutex_);
  // Whether a call timed out while its answer was arriving.
  bool cut_short_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyTime first_failure_ ABSL_GUARDED_BY(mutex_) =
      SteadyTime::InfiniteFuture();
  absl::Duration backoff_ ABSL_GUARDED_BY(mutex_) = absl::Milliseconds(50);
};

}  // namespace millrace
