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
// `partition_wait`. That counts from the first failure, or from the start of
// a call that was not answered at all; but of a wait that such a call has used
// up, kLeastTimeout is left for an attempt elsewhere. Servers that are only
// overloaded, and such as answer and break off again and again, are waited for
// longer: 10 minutes. Warns while a partition is waited for, from 1 s on, at
// most every 5 s in a process.
// Threads: any; After() one at a time.
class Retry {
 public:
  // What an attempt gets at least: enough for a server to say that it waits
  // for another one (ServerOptions::peer_wait).
  static constexpr absl::Duration kLeastTimeout = absl::Seconds(5);

  explicit Retry(absl::Duration partition_wait)
      : partition_wait_(partition_wait) {}

  // What a call that starts now may take: `timeout`, but no more than is left
  // of the wait for any partition, nor less than kLeastTimeout. All of it once
  // a call ran out of time while it was being answered.
  absl::Duration TimeoutOf(absl::Duration timeout, SteadyTime now) const;

  // A call of the partition has brought something: its wait starts anew.
  void NoteAnswer(int partition, SteadyTime now);

  // A call of the partition that began at `start` has run out of time.
  void NoteSilence(int partition, SteadyTime start, SteadyTime now);

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

  const absl::Duration partition_wait_;

  mutable Mutex mutex_;
  std::map<int, Since> since_ ABSL_GUARDED_BY(mutex_);
  bool cut_short_ ABSL_GUARDED_BY(mutex_) = false;  // a call with answers
  SteadyTime first_failure_ ABSL_GUARDED_BY(mutex_) =
      SteadyTime::InfiniteFuture();
  absl::Duration backoff_ ABSL_GUARDED_BY(mutex_) = absl::Milliseconds(50);
};

}  // namespace millrace
