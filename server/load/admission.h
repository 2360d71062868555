// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "server/load/fair_shares.h"

namespace millrace {

// Bounds the total memory of all calls of one kind. A call first reserves what
// earlier calls of the same job needed (nothing if none has been settled yet),
// and reserves more before it allocates more.
//
// When memory runs short, calls of clients that hold more than their fair share
// are ended in favour of a client that stays within its own: first the streams
// whose reader is not taking what was sent, longest wait first, then the newest
// of the others. A client that exceeds its share can only end streams that have
// waited for kStalledAfter: its own, or those of clients that also exceed their
// share. The memory of an ended call counts as free at once, although the call
// returns it only when it is gone, so up to twice the limit may be in use for a
// while.
// Threads: any.
class Admission {
 private:
  struct Holding;

 public:
  // How long a stream may wait for its reader while others need its memory.
  static constexpr absl::Duration kStalledAfter = absl::Seconds(5);

  struct Caller {
    std::string client;  // see ClientName()
    // Makes another thread end the call soon (see EndedForOthers()). Called
    // during the lifetime of the reservation, with a lock held, so it must not
    // use the Admission.
    std::function<void()> end;
  };

  // Memory granted to one call, returned on destruction. The Admission must
  // outlive it. Not thread-safe.
  class Reservation {
   public:
    Reservation();
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation();

    // Ensures that at least `bytes` in total are reserved.
    // FAILED_PRECONDITION: `bytes` alone exceeds the limit (names both).
    // RESOURCE_EXHAUSTED: no room now, or the call is being ended for others;
    // says when to retry.
    absl::Status GrowTo(uint64_t bytes);

    // Records what the call needed at its peak and adjusts the reservation to
    // `bytes`: returns the excess, or reserves what is missing. Fails like
    // GrowTo().
    absl::Status Settle(uint64_t bytes);

    // Marks the call as waiting for its reader to take what was sent, or as no
    // longer waiting. Does nothing if nothing is reserved.
    void StartWaiting();
    void StopWaiting();

    uint64_t bytes() const;

   private:
    friend class Admission;
    explicit Reservation(std::unique_ptr<Holding> holding);
    void Release();

    std::unique_ptr<Holding> holding_;  // null if nothing is reserved
  };

  // `what` is the word for a call in error messages, such as "batch"; a string
  // literal.
  explicit Admission(uint64_t limit, const char* what = "batch",
                     absl::Duration stalled_after = kStalledAfter)
      : limit_(limit),
        what_(what),
        stalled_after_(stalled_after),
        shares_(limit) {}

  // Reserves at least `min_bytes` for a call. `job` is a hash that is equal for
  // similar calls. Fails like GrowTo().
  absl::StatusOr<Reservation> Reserve(Caller caller, uint64_t job,
                                      uint64_t min_bytes);

  uint64_t limit() const { return limit_; }
  // Bytes held by all calls, including those that are being ended.
  uint64_t in_use() const;

 private:
  absl::Status Grow(Holding& holding, uint64_t bytes);
  void GiveBack(Holding& holding, uint64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeRoom(const Holding& holding, uint64_t more)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Holding*> ToEnd(const Holding& asking, uint64_t more) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Holding*> Candidates(const Holding& asking,
                                   bool only_stalled) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(Holding& holding);
  // Bytes not held by calls, or held only by calls that are being ended.
  uint64_t room() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_;
  const char* const what_;
  const absl::Duration stalled_after_;

  mutable Mutex mutex_;
  // Held by calls that are not being ended.
  FairShares shares_ ABSL_GUARDED_BY(mutex_);
  // Held by the calls that are being ended.
  uint64_t ending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<Holding*> holdings_ ABSL_GUARDED_BY(mutex_);
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  // Moving average of the peak of each job.
  absl::flat_hash_map<uint64_t, double> averages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
