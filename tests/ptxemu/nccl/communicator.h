// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "tests/ptxemu/nccl/meeting_place.h"

namespace millrace::ncclemu {

class Collective;

// A rank's end of a communicator.
// Threads: any; Submit() is for one at a time. Steps of Collective, which run
// with the CUDA runtime's lock, use it too, so nobody calls CUDA while holding
// a lock of this class. Lifetime: shared by the handle, by operations that are
// not done, and by threads that join, launch or finalize, of which an abort
// leaves some behind.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  struct Place {
    std::string id;
    int rank;
    int ranks;
    int device;
    bool is_blocking;
  };

  explicit Communicator(const Place& place);

  const Place& place() const { return place_; }
  // What ncclCommGetAsyncError() says: ncclInProgress, ncclSuccess or the first
  // error.
  ncclResult_t state() const { return state_; }
  bool HasFailed() const;
  // Prints an error, and keeps it if it is the first one. Returns `result`.
  ncclResult_t Fail(ncclResult_t result, const std::string& why);
  std::string error() const;  // the last one

  // Meets the other ranks. Blocks until all have come, or this failed or was
  // aborted.
  void Join();
  // The same on a thread of its own.
  void StartJoining();
  bool has_joined() const { return has_joined_; }
  const MeetingPlace& meeting_place() const { return *meeting_place_; }

  struct Call {
    Description description;
    const void* send;
    void* receive;
    cudaStream_t stream;
  };
  // Puts an operation into its stream. Operations of a communicator run one by
  // one in the order of these calls, whatever their streams. ncclInProgress: a
  // communicator that does not block does so after the call.
  ncclResult_t Submit(const Call& call);

  // Waits until this rank's operations are done, for `timeout` at most. Returns
  // whether they are.
  bool Drain(absl::Duration timeout);
  // Refuses further operations, and waits for those so far.
  ncclResult_t Finalize();
  bool is_finalized() const { return is_finalized_; }
  // Ends this rank's operations. The other ranks are not told.
  void Abort() { is_aborted_ = true; }
  bool is_aborted() const { return is_aborted_; }
  // Tells the others that this rank will not come to further operations.
  void Leave();

 private:
  friend class Collective;

  bool LaunchesLate();
  ncclResult_t Launch(std::shared_ptr<Collective> collective);
  void AwaitRanks();
  // Sets ncclInProgress to ncclSuccess.
  void EndProgress();
  std::string DuplicateDevice() const;

  const Place place_;

  // Null until this has joined; then it stays.
  std::unique_ptr<MeetingPlace> meeting_place_;
  std::atomic<ncclResult_t> state_ = ncclInProgress;
  std::atomic<bool> has_joined_ = false;
  std::atomic<bool> is_finalized_ = false;
  std::atomic<bool> is_aborted_ = false;
  std::atomic<uint64_t> submitted_ = 0;
  std::atomic<uint64_t> ended_ = 0;  // operations: done, dropped or aborted

  std::mt19937_64 random_;  // of the thread that submits

  mutable Mutex mutex_;
  std::string error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace millrace::ncclemu
