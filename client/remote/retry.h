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

// Whether and when a failed attempt is repeated: jittered exponential
// back-off from 50 ms to 1 s, until one partition has not answered for
// `partition_wait`. That counts from the first failure, or from the last answer
// or the start of a call that waited for the partition. Servers that are only
// overloaded, and those that answer but break off repeatedly, are waited for
// longer: 10 minutes. Warns while a partition is waited for, from 1 s on, at
// most every 5 s in a process.
// Threads: any; After() one at a time.
class Retry {
 public:
  // The shortest time that an attempt gets. A wait may end later by as much.
  static constexpr absl::Duration kLeastTimeout = absl::Seconds(1);

  explicit Retry(absl::Duration partition_wait)
      : partition_wait_(partition_wait) {}

  // How long a call that starts now may take: `timeout`, but no longer than
  // what is left of the wait for a partition or, while none is waited for,
  // three quarters of a wait, so that another replica can be asked; at least
  // kLeastTimeout. Once a call ran out of time while it was being answered, all
  // of `timeout`.
  absl::Duration TimeoutOf(absl::Duration timeout, SteadyTime now) const;

  // How long a call of the partition may bring nothing, by the same rule.
  absl::Duration PatienceOf(int partition, SteadyTime now) const;

  // A call of the partition has brought something: its wait starts anew.
  void NoteAnswer(int partition, SteadyTime now);

  // A call of the partition that began at `start` was silent, or ran out of
  // time.
  void NoteSilence(int partition, SteadyTime start);
  // A call of another partition that began at `start` has waited for this one.
  void NoteWait(int partition, SteadyTime start);

  // How long to wait before the next attempt; an error when there is none:
  // `failure` itself if it is not retryable, else UNAVAILABLE saying how long
  // the partition was waited for or has broken off again and again, or
  // RESOURCE_EXHAUSTED if it is overload that does not end. The failure's
  // ErrorInfo says whose it is.
  absl::StatusOr<absl::Duration> After(const absl::Status& failure,
                                       SteadyTime now);

 private:
  // What is known of a partition.
  struct Since {
    SteadyTime answered = SteadyTime::InfinitePast();
    // First failures since then.
    SteadyTime unavailable = SteadyTime::InfiniteFuture();
    SteadyTime overloaded = SteadyTime::InfiniteFuture();
  };

  // When After() gives up, after how long that is, and whether because the
  // whole never succeeds although the partition answers now and then.
  struct End {
    SteadyTime time;
    absl::Duration patience;
    bool broken_off;
  };
  End EndOf(int partition, bool overload, SteadyTime now);
  // The time that a call which starts at `now` gets of a wait that began at
  // `unavailable`.
  absl::Duration ShareOf(SteadyTime unavailable, SteadyTime now) const;

  const absl::Duration partition_wait_;

  mutable Mutex mutex_;
  std::map<int, Since> since_ ABSL_GUARDED_BY(mutex_);
  bool cut_short_ ABSL_GUARDED_BY(mutex_) = false;  // a call with answers
  SteadyTime first_failure_ ABSL_GUARDED_BY(mutex_) =
      SteadyTime::InfiniteFuture();
  absl::Duration backoff_ ABSL_GUARDED_BY(mutex_) = absl::Milliseconds(50);
};

}  // namespace millrace
