// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/steady_time.h"
#include "tests/ptxemu/nccl/communicator.h"

namespace millrace::ncclemu {

// An operation of a communicator, as work in a stream.
//
//   waiting --delay--> started --> arrived --> given --> done
//
// An arrived rank has said what it does; a given one has read its input. A rank
// that is missing or dead leaves the others spinning until they abort, after
// which the result is 0xCD.
// Threads: those that run queued work, with the CUDA runtime's lock.
class Collective {
 public:
  // What is random about an operation.
  struct Luck {
    absl::Duration delay;
    bool reads_late;  // only once all ranks have come
    bool ends_early;  // a root, perhaps before the others have come
  };
  static Luck Draw(std::mt19937_64* random);

  Collective(std::shared_ptr<Communicator> communicator,
             const Communicator::Call& call, uint64_t number, const Luck& luck);
  // Counts the operation as ended.
  ~Collective();
  Collective(const Collective&) = delete;
  Collective& operator=(const Collective&) = delete;

  cudaStream_t stream() const { return call_.stream; }

  // Goes as far as it can without waiting. Returns whether the operation is
  // done.
  // INTERNAL: a pointer is not one to memory of the device, or the ranks do not
  // do the same.
  absl::StatusOr<bool> Step();

 private:
  enum class Phase { kWaiting, kStarted, kArrived, kGiven };

  // Each returns whether the phase has ended.
  bool Wait();
  bool Arrive();
  absl::StatusOr<bool> Give();
  absl::StatusOr<bool> Take();

  // Compares what the ranks do. False: they differ, and this rank hangs.
  absl::StatusOr<bool> Agrees();
  absl::StatusOr<bool> Mismatch(const std::string& what);
  bool AllHave(std::atomic<uint64_t> Seat::*counter) const;
  bool HasEnough() const;
  void LookForDead();
  void SpoilResult();

  Seat& own_seat() const;
  const MeetingPlace& place() const { return communicator_->meeting_place(); }
  int rank() const { return communicator_->place().rank; }
  int ranks() const { return communicator_->place().ranks; }
  bool is_root() const { return rank() == call_.description.root; }
  size_t bytes() const;

  const std::shared_ptr<Communicator> communicator_;
  const Communicator::Call call_;
  const uint64_t number_;  // among the communicator's operations
  const Luck luck_;
  Phase phase_ = Phase::kWaiting;
  std::optional<SteadyTime> reached_;
  SteadyTime looked_;  // for dead ranks
  bool has_complained_ = false;
};

}  // namespace millrace::ncclemu
