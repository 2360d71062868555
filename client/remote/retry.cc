// SPDX-License-Identifier: Apache-2.0
#include "client/remote/retry.h"

#include <algorithm>
#include <random>
#include <string>

#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

constexpr absl::Duration kOverloadPatience = absl::Minutes(10);

// Spreads the retries of many clients; reaches no batch.
double Jitter() {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>(0.5, 1.0)(generator);
}

// The first line of a message.
std::string What(const absl::Status& failure) {
  const std::string message(failure.message());
  return message.substr(0, message.find('\n'));
}

std::string NamePartition(const std::string& what, const ErrorInfo& info) {
  if (!info.partition.has_value() || what.rfind("partition ", 0) == 0) {
    return what;
  }
  return StrCat("partition ", *info.partition, ": ", what);
}

absl::Status Lost(const absl::Status& failure, const ErrorInfo& info,
                  absl::Duration patience) {
  return absl::UnavailableError(
      StrCat(NamePartition(What(failure), info), "; gave up after ",
             absl::FormatDuration(patience),
             " (--partition-wait)\nstart a server of that partition, or see "
             "`millrace status --servers LIST`"));
}

absl::Status Overloaded(const absl::Status& failure) {
  return absl::ResourceExhaustedError(StrCat(
      What(failure), "; gave up after ",
      absl::FormatDuration(kOverloadPatience),
      "\nadd servers, raise their --max-inflight-bytes, or use a smaller "
      "--prefetch-batches"));
}

}  // namespace

absl::StatusOr<absl::Duration> Retry::After(const absl::Status& failure,
                                            absl::Time now) {
  if (!IsRetryable(failure)) return failure;
  const ErrorInfo info = ErrorInfoOf(failure);
  const bool overload = absl::IsResourceExhausted(failure);
  absl::Time& first = overload ? first_overload_ : first_failure_;
  const absl::Duration patience =
      overload ? kOverloadPatience : partition_wait_;
  first = std::min(first, now);
  const absl::Duration left = first + patience - now;
  if (left <= absl::ZeroDuration()) {
    return WithErrorInfo(
        overload ? Overloaded(failure) : Lost(failure, info, patience), info);
  }
  absl::Duration wait = std::max(backoff_ * Jitter(), info.retry_after);
  backoff_ = std::min(backoff_ * 1.6, absl::Seconds(1));
  return std::clamp(wait, absl::Milliseconds(1), left);
}

}  // namespace millrace
