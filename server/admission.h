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
#include "server/fair_shares.h"

namespace millrace {

// Bounds the memory of all calls of a kind together. A call reserves what calls
// of its job used to need (none that was never settled), and more before it
// allocates more.
//
// Where room is short, calls of clients that hold more than their fair share
// are ended for a client that stays within its own: first streams whose reader
// does not take what was sent, the one that has waited longest first, and then
// the newest of the others. A client that goes beyond its share ends only
// streams that have waited for kStalledAfter, its own or those of clients that
// hold more than their share. What ended calls hold counts as free from then
// on, although they give it back only when they are gone: until then up to
// twice the limit may be in use. Threads: any.
class Admission {
 private:
  struct Holding;

 public:
  // How long a stream may wait for its reader where others need its memory.
  static constexpr absl::Duration kStalledAfter = absl::Seconds(5);

  // On whose behalf memory is reserved.
  struct Caller {
    std::string client;  // see ClientName()
    // Makes another thread end the call soon (see EndedForOthers()).
    // Called while the reservation lives, with a lock held: must not use the
    // Admission.
    std::function<void()> end;
  };

  // Memory promised to one call; given back when it dies. The Admission must
  // outlive it. Threads: one at a time.
  class Reservation {
   public:
    Reservation();
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation();

    // Makes sure that `bytes` in all are reserved.
    // FAILED_PRECONDITION: more than the limit even alone (names both).
    // RESOURCE_EXHAUSTED: not now, or the call is being ended for others; with
    // a hint when to ask again.
    absl::Status GrowTo(uint64_t bytes);

    // Tells what the call needed at its peak, and keeps `bytes`: gives back
    // what is above, reserves what is missing. Errors as GrowTo.
    absl::Status Settle(uint64_t bytes);

    // Tells that the call waits for its reader to take what was sent, or that
    // the reader has taken it. Does nothing where nothing is reserved.
    void StartWaiting();
    void StopWaiting();

    uint64_t bytes() const;

   private:
    friend class Admission;
    explicit Reservation(std::unique_ptr<Holding> holding);
    void Release();

    std::unique_ptr<Holding> holding_;  // null: nothing is reserved
  };

  // `what`: what errors call a call, such as "batch"; a string literal.
  explicit Admission(uint64_t limit, const char* what = "batch",
                     absl::Duration stalled_after = kStalledAfter)
      : limit_(limit),
        what_(what),
        stalled_after_(stalled_after),
        shares_(limit) {}

  // `job`: a hash of what makes calls alike. Errors as GrowTo.
  absl::StatusOr<Reservation> Reserve(Caller caller, uint64_t job,
                                      uint64_t least_bytes);

  uint64_t limit() const { return limit_; }
  // What calls hold, those that are being ended included.
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
  // Bytes that no call holds, except calls that are being ended.
  uint64_t room() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t limit_;
  const char* const what_;
  const absl::Duration stalled_after_;

  mutable Mutex mutex_;
  // Of calls that are not being ended.
  FairShares shares_ ABSL_GUARDED_BY(mutex_);
  uint64_t ending_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all others
  absl::flat_hash_set<Holding*> holdings_ ABSL_GUARDED_BY(mutex_);
  uint64_t arrivals_ ABSL_GUARDED_BY(mutex_) = 0;
  // Moving average of the peaks of each job.
  absl::flat_hash_map<uint64_t, double> averages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
