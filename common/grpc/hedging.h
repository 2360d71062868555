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
#include "common/grpc/call_timer.h"

namespace millrace {

// When a call that has brought nothing yet is sent to a second replica too
// (hedged requests of Dean and Barroso, "The Tail at Scale", 2013): above the
// 95th percentile of the times that answers took lately, and for at most
// one in twenty of all calls.
// Threads: any.
class Hedging {
 public:
  enum class Kind { kSample, kGather, kExpand, kLookup };

  // Hedges per call, so that a fleet that is slow as a whole is not asked
  // twice.
  static constexpr double kShare = 0.05;
  // Hedges that quiet times save up.
  static constexpr double kMostSaved = 32;
  // Times before the percentile is believed, and those that it is taken of.
  static constexpr size_t kLeastTimes = 20;
  static constexpr size_t kMostTimes = 256;

  // Counts a call.
  void NoteCall();
  // The first sign of an answer came so long after a call's start.
  void NoteAnswer(Kind kind, absl::Duration time);

  // After how long without a sign a call is hedged; unknown at first.
  std::optional<absl::Duration> DelayOf(Kind kind) const;
  // Takes one hedge of those that the calls so far allow.
  bool Take();

  // Tells a call when it has waited so long.
  CallTimer& timer() { return timer_; }

  int64_t calls() const;
  int64_t hedges() const;

 private:
  struct Times {
    std::vector<absl::Duration> latest;  // a ring
    size_t next = 0;
    absl::Duration percentile;  // of `latest`, now and then
    size_t fresh = 0;           // times since
  };

  mutable Mutex mutex_;
  std::array<Times, 4> times_ ABSL_GUARDED_BY(mutex_);
  double saved_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t hedges_ ABSL_GUARDED_BY(mutex_) = 0;
  CallTimer timer_;
};

}  // namespace millrace
