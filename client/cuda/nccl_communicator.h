// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cuda/nccl_group.h"
#include "common/base/steady_time.h"

struct ncclComm;  // <nccl.h>'s

namespace millrace::cuda {

// A rank's end of a communicator of NCCL whose calls do not block. All ranks
// make the same calls of AddUp() in the same order.
// Errors of all calls: UNAVAILABLE: a rank is lost or has failed (names it),
// the device has failed, or the ranks cannot reach each other. INTERNAL: NCCL
// has failed although every rank is alive. CANCELLED: interrupted.
// DEADLINE_EXCEEDED: the ranks are not connected by the deadline. After an
// error all work of the communicator has been ended, its results are garbage,
// and only the destructor may be called. Threads: one at a time, with the
// group's device current.
class NcclCommunicator {
 public:
  // Meets the other ranks, for start_timeout at most after rank 0 has shared
  // where. Also FAILED_PRECONDITION: ranks have different versions of NCCL, or
  // NCCL_COMM_BLOCKING is set.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Connect(
      const NcclGroup& group);
  // Ends the communicator's work, unless Close() was called.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Puts the sum of `count` floats over all ranks, in place, into the stream.
  // The first sums also make connections, for which this waits until
  // `deadline`.
  absl::Status AddUp(float* data, size_t count, cudaStream_t stream,
                     SteadyTime deadline);

  // Says what keeps the work so far from being done; OK if nothing does. Does
  // not wait.
  absl::Status Check(SteadyTime deadline);

  // Ends the communicator's work, which may spin for ever without a rank that
  // is lost. Waits some seconds at most.
  void Abort();
  // Leaves the group after all work is done. Waits some seconds at most.
  void Close();

 private:
  explicit NcclCommunicator(const NcclGroup& group) : group_(group) {}
  // Results are those of NCCL, ncclResult_t.
  int AsyncResult() const;
  absl::Status Await(int result, SteadyTime deadline);
  absl::Status Fail(int result);

  const NcclGroup group_;
  ncclComm* communicator_ = nullptr;  // null after an error
  bool is_connected_ = false;
};

}  // namespace millrace::cuda
