// SPDX-License-Identifier: Apache-2.0
#include "client/remote/retry.h"

#include <algorithm>
#include <random>
#include <string>

#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status_lines.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

// How long to keep trying servers that answer but never complete a batch.
constexpr absl::Duration kLongPatience = absl::Minutes(10);
constexpr absl::Duration kWarnInterval = absl::Seconds(5);
// Shorter waits are not worth a warning.
constexpr absl::Duration kWarnAfter = absl::Seconds(1);
// Used for failures that name no partition.
constexpr int kNoPartition = -1;

// Spreads the retries of many clients; never affects the content of a batch.
double Jitter() {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>(0.5, 1.0)(generator);
}

// " partition 3" after `word`, for failures that name one.
std::string OfPartition(std::string_view word, const ErrorInfo& info) {
  return info.partition.has_value()
             ? StrCat(" ", word, " partition ", *info.partition)
             : "";
}

absl::Status Lost(const absl::Status& failure, const ErrorInfo& info,
                  absl::Duration patience) {
  return WithReason(
      absl::UnavailableError(StrCat(FirstLine(failure), "; gave up",
                                    OfPartition("on", info), " after ",
                                    absl::FormatDuration(patience))),
      Reason{"partition_lost"});
}

// The error for servers that answer, but always break off.
absl::Status BrokenOff(const absl::Status& failure, const ErrorInfo& info,
                       absl::Duration patience) {
  return WithReason(
      absl::UnavailableError(
          StrCat(FirstLine(failure), "; calls", OfPartition("to", info),
                 " kept breaking off for ", absl::FormatDuration(patience))),
      Reason{"server_breaks_off"});
}

absl::Status Overloaded(const absl::Status& failure) {
  return WithReason(absl::ResourceExhaustedError(
                        StrCat(FirstLine(failure), "; gave up after ",
                               absl::FormatDuration(kLongPatience))),
                    Reason{"servers_overloaded"});
}

// Whether to log a warning about the partition now. All fetches of a process
// wait for the same servers, so they share the interval.
bool WarningDue(int partition, SteadyTime now) {
  static Mutex mutex;
  static std::map<int, SteadyTime>& last = *new std::map<int, SteadyTime>;
  MutexLock lock(&mutex);
  const auto [entry, first] = last.emplace(partition, now);
  if (first) return true;
  if (now - entry->second < kWarnInterval) return false;
  entry->second = now;
  return true;
}

void WarnOfRetries(const absl::Status& failure, const ErrorInfo& info,
                   absl::Duration left) {
  LogFields fields;
  if (info.partition.has_value()) {
    fields.push_back({"partition", *info.partition});
  }
  fields.push_back({"seconds_left",
                    absl::ToInt64Seconds(absl::Ceil(left, absl::Seconds(1)))});
  fields.push_back({"error", FirstLine(failure)});
  LogWarning(LogComponent::kLoader, StrCat("retrying calls", AdviceOf(failure)),
             fields);
}

}  // namespace

absl::Duration Retry::ShareOf(SteadyTime unavailable, SteadyTime now) const {
  const bool waiting = unavailable < SteadyTime::InfiniteFuture();
  return std::max(
      waiting ? unavailable + partition_wait_ - now : partition_wait_ * 0.75,
      kMinTimeout);
}

absl::Duration Retry::TimeoutOf(absl::Duration timeout, SteadyTime now) const {
  MutexLock lock(&mutex_);
  if (cut_short_) return timeout;
  SteadyTime first = SteadyTime::InfiniteFuture();
  for (const auto& [partition, state] : partitions_) {
    first = std::min(first, state.unavailable);
  }
  return std::min(timeout, ShareOf(first, now));
}

absl::Duration Retry::MaxSilenceOf(int partition, SteadyTime now) const {
  MutexLock lock(&mutex_);
  const auto state = partitions_.find(partition);
  return ShareOf(state == partitions_.end() ? SteadyTime::InfiniteFuture()
                                            : state->second.unavailable,
                 now);
}

void Retry::NoteAnswer(int partition, SteadyTime now) {
  MutexLock lock(&mutex_);
  partitions_[partition] = {.answered = now};
}

void Retry::NoteSilence(int partition, SteadyTime start) {
  {
    MutexLock lock(&mutex_);
    cut_short_ |= partitions_[partition].answered > start;
  }
  NoteWait(partition, start);
}

void Retry::NoteWait(int partition, SteadyTime start) {
  MutexLock lock(&mutex_);
  PartitionState& state = partitions_[partition];
  state.unavailable =
      std::min(state.unavailable, std::max(start, state.answered));
}

Retry::End Retry::EndOf(int partition, bool overload, SteadyTime now) {
  MutexLock lock(&mutex_);
  PartitionState& state = partitions_[partition];
  SteadyTime& first = overload ? state.overloaded : state.unavailable;
  first = std::min(first, now);
  first_failure_ = std::min(first_failure_, now);
  const absl::Duration patience = overload ? kLongPatience : partition_wait_;
  const absl::Duration whole = std::max(kLongPatience, partition_wait_);
  // Gives up on the partition, or earlier on a batch that never completes.
  return first_failure_ + whole < first + patience
             ? End{first_failure_ + whole, whole, /*broken_off=*/true}
             : End{first + patience, patience, /*broken_off=*/false};
}

absl::StatusOr<absl::Duration> Retry::After(const absl::Status& failure,
                                            SteadyTime now) {
  if (!IsRetryable(failure)) return failure;
  const ErrorInfo info = ErrorInfoOf(failure);
  const bool overload = absl::IsResourceExhausted(failure);
  const int partition = info.partition.value_or(kNoPartition);
  const End end = EndOf(partition, overload, now);
  const absl::Duration left = end.time - now;
  if (left <= absl::ZeroDuration()) {
    if (overload) return WithErrorInfo(Overloaded(failure), info);
    return WithErrorInfo(end.broken_off ? BrokenOff(failure, info, end.patience)
                                        : Lost(failure, info, end.patience),
                         info);
  }
  if (end.patience - left >= kWarnAfter && WarningDue(partition, now)) {
    WarnOfRetries(failure, info, left);
  }
  MutexLock lock(&mutex_);
  const absl::Duration wait = std::max(backoff_ * Jitter(), info.retry_after);
  backoff_ = std::min(backoff_ * 1.6, absl::Seconds(1));
  return std::min(std::max(wait, absl::Milliseconds(1)), left);
}

}  // namespace millrace
