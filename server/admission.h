// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"

namespace millrace {

// Bounds the memory of all calls of a kind together. A call reserves what calls
// of its job used to need (none that was never settled), and more before it
// allocates more.
// Threads: any.
class Admission {
 public:
  // Memory promised to one call; given back when it dies. The Admission must
  // outlive it. Threads: one at a time.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation();

    // Makes sure that `bytes` in all are reserved.
    // FAILED_PRECONDITION: more than the limit even alone (names both).
    // RESOURCE_EXHAUSTED: not now; with a hint when to ask again.
    absl::Status GrowTo(uint64_t bytes);

    // Tells what the call needed at its peak, and keeps `bytes`: gives back
    // what is above, reserves what is missing. Errors as GrowTo.
    absl::Status Settle(uint64_t bytes);

    uint64_t bytes() const { return bytes_; }

   private:
    friend class Admission;
    Reservation(Admission* admission, uint64_t job)
        : admission_(admission), job_(job) {}
    void Release();

    Admission* admission_ = nullptr;
    uint64_t job_ = 0;
    uint64_t bytes_ = 0;  // reserved
    uint64_t peak_ = 0;   // asked for
  };

  // `what`: whom errors call too large, a literal.
  explicit Admission(uint64_t limit, const char* what = "batch")
      : limit_(limit), what_(what) {}

  // `job`: a hash of what makes calls alike. Errors as GrowTo.
  absl::StatusOr<Reservation> Reserve(uint64_t job, uint64_t least_bytes);

  uint64_t limit() const { return limit_; }
  uint64_t in_use() const;

 private:
  absl::Status Take(uint64_t more, uint64_t whole);

  const uint64_t limit_;
  const char* const what_;

  mutable Mutex mutex_;
  uint64_t in_use_ ABSL_GUARDED_BY(mutex_) = 0;
  // Moving average of the peaks of each job.
  absl::flat_hash_map<uint64_t, double> averages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace
