// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/hedging.h"

#include <algorithm>

#include "common/base/mutex.h"

namespace millrace {
namespace {

constexpr double kPercentile = 0.95;
// The percentile is updated once in this many times.
constexpr size_t kLookEvery = 16;

absl::Duration PercentileOf(std::vector<absl::Duration> times) {
  const auto place =
      times.begin() + static_cast<std::ptrdiff_t>(
                          kPercentile * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), place, times.end());
  return *place;
}

}  // namespace

void Hedging::NoteCall() {
  MutexLock lock(&mutex_);
  ++calls_;
  saved_ = std::min(saved_ + kShare, kMaxSaved);
}

void Hedging::NoteAnswer(Kind kind, absl::Duration time) {
  MutexLock lock(&mutex_);
  Times& times = times_[static_cast<size_t>(kind)];
  if (times.latest.size() < kMaxTimes) {
    times.latest.push_back(time);
  } else {
    times.latest[times.next] = time;
    times.next = (times.next + 1) % kMaxTimes;
  }
  ++times.fresh;
  const bool first = times.latest.size() == kMinTimes;
  if (first || times.fresh >= kLookEvery) {
    times.percentile = PercentileOf(times.latest);
    times.fresh = 0;
  }
}

std::optional<absl::Duration> Hedging::DelayOf(Kind kind) const {
  MutexLock lock(&mutex_);
  const Times& times = times_[static_cast<size_t>(kind)];
  if (times.latest.size() < kMinTimes) return std::nullopt;
  return times.percentile;
}

bool Hedging::Take() {
  MutexLock lock(&mutex_);
  if (saved_ < 1) return false;
  saved_ -= 1;
  ++hedges_;
  return true;
}

int64_t Hedging::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

int64_t Hedging::hedges() const {
  MutexLock lock(&mutex_);
  return hedges_;
}

}  // namespace millrace
