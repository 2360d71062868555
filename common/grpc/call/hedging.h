// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace millrace {

// Decides when a call that has not been answered yet is sent to a second
// replica too (hedged requests; Dean and Barroso, "The Tail at Scale", 2013):
// once it has waited longer than the 95th percentile of recent answers, and for
// at most one in twenty of all calls.
// Threads: any thread may call any method.
class Hedging {
 public:
  enum class Kind { kSample, kGather, kExpand, kLookup };

  // Hedges allowed per call, so that a fleet that is slow as a whole does not
  // get every call twice.
  static constexpr double kShare = 0.05;
  // Limit for unused hedges that are saved up.
  static constexpr double kMaxSaved = 32;
  // How many response times are needed before the percentile is used, and how
  // many recent ones it is computed from.
  static constexpr size_t kMinTimes = 20;
  static constexpr size_t kMaxTimes = 256;

  void NoteCall();
  // Records that the first message of an answer came `time` after the call's
  // start.
  void NoteAnswer(Kind kind, absl::Duration time);

  // How long a call waits for its first message before it is hedged; nullopt
  // until enough answers have been seen.
  std::optional<absl::Duration> DelayOf(Kind kind) const;
  // Uses up one of the hedges allowed by the calls so far; false if there is
  // none.
  bool Take();

  int64_t calls() const;
  int64_t hedges() const;

 private:
  struct Times {
    std::vector<absl::Duration> latest;  // a ring buffer
    size_t next = 0;
    absl::Duration percentile;  // of `latest`, updated every few times
    size_t fresh = 0;           // times recorded since that update
  };

  mutable Mutex mutex_;
  std::array<Times, 4> times_ ABSL_GUARDED_BY(mutex_);
  double saved_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t hedges_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
