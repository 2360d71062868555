// SPDX-License-Identifier: Apache-2.0
// A queue for HopSampler (hop_sampler.cuh) that is a CUDA stream. Only for
// nvcc.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_scan.cuh>

#include "common/cuda/sample/kernel.cuh"

namespace millrace::cuda {

// Work and memory of one stream of the current device, which must stay the
// calling thread's. After the first failure of the runtime nothing more is
// done; failure() says what it was, except that memory has run out.
// Not thread-safe. The stream must outlive it.
class CudaQueue {
 public:
  explicit CudaQueue(cudaStream_t stream) : stream_(stream) {
    int device = 0, processors = 0;
    Check(cudaGetDevice(&device));
    Check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                 device));
    max_grid_ = static_cast<uint64_t>(std::max(processors, 1)) * kBlocksEach;
  }
  ~CudaQueue() {
    if (scratch_ != nullptr) Free(scratch_);
  }
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  // cudaSuccess if all calls have succeeded.
  cudaError_t failure() const { return failure_; }
  bool failed() const { return failure_ != cudaSuccess; }

  void* Allocate(size_t bytes) {
    if (failed()) return nullptr;
    void* data = nullptr;
    const cudaError_t status = cudaMallocAsync(&data, bytes, stream_);
    if (status == cudaSuccess) return data;
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // which would be taken for that of a later call
    } else {
      Check(status);
    }
    return nullptr;
  }
  void Free(void* data) { Check(cudaFreeAsync(data, stream_)); }

  void Copy(void* to, const void* from, size_t bytes) {
    CopyBytes(to, from, bytes, cudaMemcpyDeviceToDevice);
  }
  // The runtime copies `from` first, unless it is pinned; pinned memory must
  // not change before the next Wait().
  void Upload(void* to, const void* from, size_t bytes) {
    CopyBytes(to, from, bytes, cudaMemcpyHostToDevice);
  }
  bool Download(void* to, const void* from, size_t bytes) {
    CopyBytes(to, from, bytes, cudaMemcpyDeviceToHost);
    return Wait();
  }
  // Waits until all work is done. False if the queue has failed; even then,
  // nothing that it has begun uses memory any longer.
  bool Wait() {
    ++waits_;
    Check(cudaStreamSynchronize(stream_));
    return !failed();
  }
  // How often the host has waited.
  uint64_t waits() const { return waits_; }

  template <typename... Parameters, typename... Arguments>
  void LaunchEach(void (*kernel)(Parameters...), uint64_t work,
                  Arguments... arguments) {
    LaunchBlocks(kernel, (work + kMaxBlock - 1) / kMaxBlock,
                 static_cast<unsigned>(std::min<uint64_t>(work, kMaxBlock)),
                 arguments...);
  }
  template <typename... Parameters, typename... Arguments>
  void LaunchBlocks(void (*kernel)(Parameters...), uint64_t blocks,
                    unsigned threads, Arguments... arguments) {
    if (failed()) return;
    const auto grid = static_cast<unsigned>(std::min(blocks, max_grid_));
    kernel<<<grid, threads, 0, stream_>>>(arguments...);
    Check(cudaGetLastError());
  }

  void ExclusiveSum(const uint64_t* from, uint64_t* to, uint64_t count) {
    if (failed()) return;
    size_t bytes = 0;
    CheckCub(cub::DeviceScan::ExclusiveSum(nullptr, bytes, from, to, count,
                                           stream_));
    if (!ReserveScratch(bytes)) return;
    CheckCub(cub::DeviceScan::ExclusiveSum(scratch_, bytes, from, to, count,
                                           stream_));
  }

 private:
  // Enough for kernels with few registers; threads step over the rest.
  static constexpr uint64_t kBlocksEach = 16;

  // Takes errors back from the runtime, which would return them again.
  void Check(cudaError_t status) {
    if (status != cudaSuccess) cudaGetLastError();
    if (!failed()) failure_ = status;
  }
  // To CUB a lost device is an invalid one. The stream knows more.
  void CheckCub(cudaError_t status) {
    if (status != cudaErrorInvalidDevice) return Check(status);
    const cudaError_t state = cudaStreamQuery(stream_);
    const bool is_lost = state != cudaSuccess && state != cudaErrorNotReady;
    Check(is_lost ? state : status);
  }
  void CopyBytes(void* to, const void* from, size_t bytes,
                 cudaMemcpyKind kind) {
    if (failed()) return;
    Check(cudaMemcpyAsync(to, from, bytes, kind, stream_));
  }
  // The sums of a hop cannot be left out, so that too little memory for them is
  // a failure.
  bool ReserveScratch(size_t bytes) {
    if (bytes <= scratch_bytes_) return true;
    if (scratch_ != nullptr) Free(scratch_);
    scratch_ = Allocate(bytes);
    scratch_bytes_ = scratch_ == nullptr ? 0 : bytes;
    if (scratch_ == nullptr) Check(cudaErrorMemoryAllocation);
    return scratch_ != nullptr;
  }

  const cudaStream_t stream_;
  cudaError_t failure_ = cudaSuccess;
  uint64_t max_grid_ = 1;
  uint64_t waits_ = 0;
  void* scratch_ = nullptr;
  size_t scratch_bytes_ = 0;
};

}  // namespace millrace::cuda
