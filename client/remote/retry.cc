// SPDX-License-Identifier: Apache-2.0
#include "client/remote/retry.h"

#include <algorithm>
#include <random>
#include <string>

#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// Spreads the retries of many clients; reaches no batch.
double Jitter() {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>(0.5, 1.0)(generator);
}

}  // namespace

absl::StatusOr<absl::Duration> Retry::After(const absl::Status& failure,
                                            absl::Time now) {
  if (!IsRetryable(failure)) return failure;
  first_failure_ = std::min(first_failure_, now);
  const ErrorInfo info = ErrorInfoOf(failure);
  const absl::Duration left = first_failure_ + partition_wait_ - now;
  if (left <= absl::ZeroDuration()) {
    const std::string message(failure.message());
    return WithErrorInfo(
        absl::UnavailableError(StrCat(
            info.partition.has_value()
                ? StrCat("partition ", *info.partition, ": ")
                : std::string(),
            message.substr(0, message.find('\n')), "; gave up after ",
            absl::FormatDuration(partition_wait_),
            " (--partition-wait)\nstart a server of that partition, or see "
            "`millrace status --servers LIST`")),
        info);
  }
  absl::Duration wait = std::max(backoff_ * Jitter(), info.retry_after);
  backoff_ = std::min(backoff_ * 1.6, absl::Seconds(1));
  return std::clamp(wait, absl::Milliseconds(1), left);
}

}  // namespace millrace
