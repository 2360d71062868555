// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace millrace {

// Whether and when a failed attempt is repeated: jittered exponential
// back-off from 50 ms to 1 s, until one partition has not answered for
// `partition_wait`. Servers that are only overloaded, and such as answer and
// break off again and again, are waited for longer: 10 minutes. Warns while a
// partition is waited for, from 1 s on, at most every 5 s in a process.
// Threads: any; After() one at a time.
class Retry {
 public:
  explicit Retry(absl::Duration partition_wait)
      : partition_wait_(partition_wait) {}

  // A call of the partition has brought something: its wait starts anew.
  void NoteAnswer(int partition);

  // How long to wait before the next attempt; an error when there is none:
  // `failure` itself if it is not retryable, else UNAVAILABLE saying how long
  // the partition was waited for or has broken off again and again, or
  // RESOURCE_EXHAUSTED if it is overload that does not end. The failure's
  // ErrorInfo says whose it is.
  absl::StatusOr<absl::Duration> After(const absl::Status& failure,
                                       absl::Time now);

 private:
  // First failures since the partition's last answer.
  struct Since {
    absl::Time unavailable = absl::InfiniteFuture();
    absl::Time overloaded = absl::InfiniteFuture();
  };

  // When After() gives up, after how long that is, and whether because the
  // whole never succeeds although the partition answers now and then.
  struct End {
    absl::Time time;
    absl::Duration patience;
    bool broken_off;
  };
  End EndOf(int partition, bool overload, absl::Time now);

  const absl::Duration partition_wait_;

  absl::Mutex mutex_;
  std::map<int, Since> since_ ABSL_GUARDED_BY(mutex_);
  absl::Time first_failure_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Duration backoff_ ABSL_GUARDED_BY(mutex_) = absl::Milliseconds(50);
};

}  // namespace millrace
