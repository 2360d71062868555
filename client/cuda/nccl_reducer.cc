// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/nccl_reducer.h"

#include <utility>

#include "client/cuda/poll_pause.h"
#include "client/cuda/rank_device.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device.h"

namespace millrace::cuda {
namespace {

// A float of the device, allocated and freed in the order of a stream, since
// cudaFree() would wait for all work of the device.
class StreamFloat {
 public:
  explicit StreamFloat(cudaStream_t stream) : stream_(stream) {
    status_ = cudaMallocAsync(reinterpret_cast<void**>(&data_), sizeof(float),
                              stream);
  }
  ~StreamFloat() {
    if (status_ == cudaSuccess) IgnoreFailure(cudaFreeAsync(data_, stream_));
  }
  StreamFloat(const StreamFloat&) = delete;
  StreamFloat& operator=(const StreamFloat&) = delete;

  cudaError_t status() const { return status_; }
  float* get() const { return data_; }

 private:
  const cudaStream_t stream_;
  float* data_ = nullptr;
  cudaError_t status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<NcclReducer>> NcclReducer::Connect(
    const NcclGroup& group) {
  const ScopedDevice device(group.device);
  MILLRACE_RETURN_IF_ERROR(AsDeviceFailure(device.status(), group.device));
  auto reducer = std::unique_ptr<NcclReducer>(new NcclReducer(group));
  reducer->failure_ = reducer->Start();
  MILLRACE_RETURN_IF_ERROR(reducer->failure_);
  return reducer;
}

absl::Status NcclReducer::Start() {
  MILLRACE_RETURN_IF_ERROR(CheckOwnDevices(group_));
  MILLRACE_RETURN_IF_ERROR(
      CheckCuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)));
  MILLRACE_RETURN_IF_ERROR(
      CheckCuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)));
  MILLRACE_ASSIGN_OR_RETURN(communicator_, NcclCommunicator::Connect(group_));
  return CheckSum(SteadyNow() + group_.start_timeout);
}

// NCCL makes connections between ranks only when they are used, and some
// machines need NCCL_P2P_DISABLE=1 for right results.
absl::Status NcclReducer::CheckSum(SteadyTime deadline) {
  const float one = 1;
  float sum = 0;
  const StreamFloat number(stream_);
  MILLRACE_RETURN_IF_ERROR(CheckCuda(number.status()));
  MILLRACE_RETURN_IF_ERROR(CheckCuda(cudaMemcpyAsync(
      number.get(), &one, sizeof one, cudaMemcpyHostToDevice, stream_)));
  MILLRACE_RETURN_IF_ERROR(Enqueue(number.get(), 1, stream_, deadline));
  MILLRACE_RETURN_IF_ERROR(AwaitSums(deadline));
  // From here on nothing in the stream depends on other ranks.
  MILLRACE_RETURN_IF_ERROR(CheckCuda(cudaMemcpyAsync(
      &sum, number.get(), sizeof sum, cudaMemcpyDeviceToHost, stream_)));
  MILLRACE_RETURN_IF_ERROR(CheckCuda(cudaStreamSynchronize(stream_)));
  if (sum == static_cast<float>(group_.world)) return absl::OkStatus();
  return absl::InternalError(
      StrCat("NCCL's sum of ", group_.world, " ones is ", sum, " on rank ",
             group_.rank,
             "\nGPUs may not reach each other's memory: try "
             "NCCL_P2P_DISABLE=1"));
}

NcclReducer::~NcclReducer() {
  const ScopedDevice device(group_.device);
  if (communicator_ != nullptr && failure_.ok() && !is_pending_) {
    communicator_->Close();
  }
  communicator_.reset();
  if (event_ != nullptr) IgnoreFailure(cudaEventDestroy(event_));
  // Does not wait for the stream's work.
  if (stream_ != nullptr) IgnoreFailure(cudaStreamDestroy(stream_));
}

absl::Status NcclReducer::Add(float* data, size_t count, cudaStream_t compute) {
  MILLRACE_RETURN_IF_ERROR(failure_);
  const ScopedDevice device(group_.device);
  failure_ = AsDeviceFailure(device.status(), group_.device);
  if (failure_.ok()) {
    failure_ = Enqueue(data, count, compute, SteadyTime::InfiniteFuture());
  }
  return failure_;
}

absl::Status NcclReducer::Finish() {
  MILLRACE_RETURN_IF_ERROR(failure_);
  const ScopedDevice device(group_.device);
  failure_ = AsDeviceFailure(device.status(), group_.device);
  if (failure_.ok()) failure_ = AwaitSums(SteadyTime::InfiniteFuture());
  return failure_;
}

absl::Status NcclReducer::Enqueue(float* data, size_t count,
                                  cudaStream_t compute, SteadyTime deadline) {
  is_pending_ = true;
  MILLRACE_RETURN_IF_ERROR(CheckCuda(cudaEventRecord(event_, compute)));
  MILLRACE_RETURN_IF_ERROR(CheckCuda(cudaStreamWaitEvent(stream_, event_, 0)));
  return communicator_->AddUp(data, count, stream_, deadline);
}

// Asks again and again, since a call of CUDA that waits would wait for ever for
// a rank that is lost.
absl::Status NcclReducer::AwaitSums(SteadyTime deadline) {
  MILLRACE_RETURN_IF_ERROR(CheckCuda(cudaEventRecord(event_, stream_)));
  PollPause pause;
  while (true) {
    const cudaError_t state = cudaEventQuery(event_);
    if (state != cudaErrorNotReady) MILLRACE_RETURN_IF_ERROR(CheckCuda(state));
    // Sums that NCCL has given up also end.
    MILLRACE_RETURN_IF_ERROR(communicator_->Check(deadline));
    if (state == cudaSuccess) break;
    pause.Wait();
  }
  is_pending_ = false;
  return absl::OkStatus();
}

absl::Status NcclReducer::CheckCuda(cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  if (communicator_ != nullptr) communicator_->Abort();
  if (error == cudaErrorMemoryAllocation) {
    return CudaStatus(error, "cannot exchange gradients");
  }
  return DeviceFailureStatus(error, group_.device);
}

}  // namespace millrace::cuda
