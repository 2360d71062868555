// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace millrace {

// Whether and when a failed attempt is repeated: jittered exponential
// back-off from 50 ms to 1 s, until `partition_wait` has passed since the
// first failure. Servers that are only overloaded are waited for longer.
// Single-threaded.
class Retry {
 public:
  explicit Retry(absl::Duration partition_wait)
      : partition_wait_(partition_wait) {}

  // How long to wait before the next attempt; an error when there is none:
  // `failure` itself if it is not retryable, else UNAVAILABLE saying how long
  // the partition was waited for, or RESOURCE_EXHAUSTED if it is overload
  // that does not end.
  absl::StatusOr<absl::Duration> After(const absl::Status& failure,
                                       absl::Time now);

 private:
  const absl::Duration partition_wait_;
  absl::Time first_failure_ = absl::InfiniteFuture();
  absl::Time first_overload_ = absl::InfiniteFuture();
  absl::Duration backoff_ = absl::Milliseconds(50);
};

}  // namespace millrace
