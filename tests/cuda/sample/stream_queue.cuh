// SPDX-License-Identifier: Apache-2.0
// A queue for HopSampler that runs kernels on a CUDA stream of its own, and
// expects that nothing fails and that all memory is freed. Only for nvcc.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "common/cuda/sample/cuda_queue.cuh"
#include "tests/cuda/sample/queue_counts.h"

namespace millrace::testing {

// A stream of the current device.
class TestStream {
 public:
  TestStream() {
    Expect(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    used_bytes_ = UsedBytes();
  }
  ~TestStream() {
    Expect(cudaStreamSynchronize(stream_));
    EXPECT_EQ(UsedBytes(), used_bytes_) << "memory was not freed";
    Expect(cudaStreamDestroy(stream_));
  }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;

 protected:
  static void Expect(cudaError_t status) {
    EXPECT_EQ(status, cudaSuccess)
        << cudaGetErrorName(status) << ": " << cudaGetErrorString(status);
  }

  cudaStream_t stream() const { return stream_; }

 private:
  // Memory of the device that cudaMallocAsync has given.
  static uint64_t UsedBytes() {
    int device = 0;
    cudaMemPool_t pool = nullptr;
    uint64_t bytes = 0;
    Expect(cudaGetDevice(&device));
    Expect(cudaDeviceGetMemPool(&pool, device));
    Expect(
        cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &bytes));
    return bytes;
  }

  cudaStream_t stream_ = nullptr;
  uint64_t used_bytes_ = 0;
};

class StreamQueue : private TestStream,
                    public cuda::CudaQueue,
                    public QueueCounts {
 public:
  // Takes a size of blocks as ThreadQueue does, but HopSampler decides.
  explicit StreamQueue(unsigned = 0) : CudaQueue(stream()) {}
  ~StreamQueue() { Expect(has_to_fail_ ? cudaSuccess : failure()); }

  void* Allocate(size_t bytes) {
    if (!MayAllocate()) return nullptr;
    void* data = CudaQueue::Allocate(bytes);
    if (data != nullptr) ++live_;
    return data;
  }
  void Free(void* data) {
    CudaQueue::Free(data);
    --live_;
  }
  // Makes the queue fail.
  void Fail() {
    has_to_fail_ = true;
    const int value = 0;
    Upload(nullptr, &value, sizeof(value));
    cudaGetLastError();  // which would be taken for that of a later call
  }

 private:
  bool has_to_fail_ = false;
};

}  // namespace millrace::testing
