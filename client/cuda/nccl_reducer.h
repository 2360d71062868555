// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cuda/nccl_communicator.h"
#include "client/cuda/nccl_group.h"
#include "common/base/steady_time.h"

namespace millrace::cuda {

// Adds up gradients of trainers on GPUs, in buckets, while the next ones are
// computed: for each step, Add() for every bucket and then Finish(). All ranks
// make the same calls, with equal counts in the same order, also a rank without
// a batch. All ranks get the same bits.
// Errors of all calls: UNAVAILABLE: a rank is lost or has failed (names it),
// the device has failed, or the ranks cannot reach each other. INTERNAL: NCCL
// has failed although every rank is alive. CANCELLED: interrupted. After an
// error all further calls return it, and what Add() was given is garbage. No
// call waits for a rank that is lost. As long as all ranks are alive there is
// no deadline, since an evaluation on another rank may take long.
// Threads: one at a time. Any device may be current.
class NcclReducer {
 public:
  // Connects the ranks, and checks that a sum is right, so that ranks that
  // cannot reach each other show here. Also DEADLINE_EXCEEDED: that takes
  // longer than start_timeout. FAILED_PRECONDITION: two ranks use the same GPU
  // (names them, on all ranks), or ranks have different versions of NCCL.
  // RESOURCE_EXHAUSTED: the device has too little memory.
  static absl::StatusOr<std::unique_ptr<NcclReducer>> Connect(
      const NcclGroup& group);
  // Leaves the group, or ends what is not finished. Takes some seconds at most.
  ~NcclReducer();
  NcclReducer(const NcclReducer&) = delete;
  NcclReducer& operator=(const NcclReducer&) = delete;

  // Adds up `count` floats at `data`, in the device's memory, over all ranks,
  // in place: after the work that `compute`, a stream of the device, has now,
  // and beside its later work, which must leave the floats alone until Finish()
  // has returned. Returns soon.
  absl::Status Add(float* data, size_t count, cudaStream_t compute);

  // Waits until all sums so far are there. Work that any stream gets afterwards
  // sees them.
  absl::Status Finish();

 private:
  explicit NcclReducer(const NcclGroup& group) : group_(group) {}
  absl::Status Start();
  absl::Status CheckSum(SteadyTime deadline);
  absl::Status Enqueue(float* data, size_t count, cudaStream_t compute,
                       SteadyTime deadline);
  absl::Status AwaitSums(SteadyTime deadline);
  // Returns the error of a call of CUDA, after which nothing is waited for.
  absl::Status CheckCuda(cudaError_t error);

  const NcclGroup group_;
  std::unique_ptr<NcclCommunicator> communicator_;
  cudaStream_t stream_ = nullptr;  // of the sums
  cudaEvent_t event_ = nullptr;
  absl::Status failure_;
  bool is_pending_ = false;  // there are sums that Finish() has not waited for
};

}  // namespace millrace::cuda
