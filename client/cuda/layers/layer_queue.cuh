// SPDX-License-Identifier: Apache-2.0
// What the operators' functions queue their work to. Only for nvcc.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "client/cuda/layers/for_each.cuh"
#include "client/cuda/layers/work_stream.h"

namespace millrace::cuda::layers {

// Work of one call of an operator. After the first failure nothing more is
// queued. Not thread-safe; `work` must outlive it.
class LayerQueue {
 public:
  explicit LayerQueue(const WorkStream& work) : work_(work) {}

  // cudaSuccess if all calls have succeeded.
  cudaError_t failure() const { return failure_; }

  // Returns uninitialised memory, or null if `count` is 0 or after a failure,
  // such as that there is not enough.
  template <typename T>
  T* Allocate(int64_t count) {
    return static_cast<T*>(AllocateBytes(count * sizeof(T)));
  }

  // Queue the kernels of for_each.cuh, unless there are no cells.
  template <typename Task>
  void ForEach(const Task& task, int64_t rows, int64_t columns) {
    Launch(ForEachCell<Task>, rows * columns, task, rows, columns);
  }
  template <typename Task>
  void ForEachByWarp(const Task& task, int64_t rows, int64_t columns) {
    Launch(ForEachCellByWarp<Task>, rows * columns * kWarp, task, rows,
           columns);
  }
  template <typename Task>
  void SumForEach(const Task& task, int64_t rows, int64_t columns,
                  unsigned lane_bits) {
    Launch(SumForEachCell<Task>, (rows * columns) << lane_bits, task, rows,
           columns, lane_bits);
  }

  // Algorithms over `count` numbers, below 2^31.
  void ExclusiveSum(const int32_t* from, int32_t* to, int64_t count) {
    WithScratch([&](void* scratch, size_t& bytes) {
      return cub::DeviceScan::ExclusiveSum(
          scratch, bytes, from, to, static_cast<int>(count), work_.stream);
    });
  }
  // Sorts by keys of `bits` bits, none of them negative. The values of equal
  // keys stay in order.
  void SortPairs(const int32_t* keys, int32_t* sorted_keys,
                 const int32_t* values, int32_t* sorted_values, int64_t count,
                 int bits) {
    if (count == 0) return;
    WithScratch([&](void* scratch, size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys,
                                             values, sorted_values, count, 0,
                                             std::max(bits, 1), work_.stream);
    });
  }

 private:
  static constexpr uint64_t kMaxGrid = 1 << 30;

  // Takes errors back from the runtime, which would return them again.
  void Check(cudaError_t status) {
    if (status != cudaSuccess) cudaGetLastError();
    if (failure_ == cudaSuccess) failure_ = status;
  }
  void* AllocateBytes(size_t bytes) {
    if (bytes == 0 || failure_ != cudaSuccess) return nullptr;
    void* data = work_.allocate(bytes);
    if (data == nullptr) failure_ = cudaErrorMemoryAllocation;
    return data;
  }
  template <typename... Parameters, typename... Arguments>
  void Launch(void (*kernel)(Parameters...), uint64_t threads,
              Arguments... arguments) {
    if (threads == 0 || failure_ != cudaSuccess) return;
    const uint64_t blocks = (threads + kMaxBlock - 1) / kMaxBlock;
    const auto grid = static_cast<unsigned>(std::min(blocks, kMaxGrid));
    kernel<<<grid, kMaxBlock, 0, work_.stream>>>(arguments...);
    Check(cudaGetLastError());
  }
  // Calls an algorithm of CUB, first for the size of its scratch memory.
  template <typename Algorithm>
  void WithScratch(const Algorithm& algorithm) {
    if (failure_ != cudaSuccess) return;
    size_t bytes = 0;
    Check(algorithm(nullptr, bytes));
    // CUB takes a null pointer for the question of the size.
    void* scratch = AllocateBytes(std::max<size_t>(bytes, 1));
    if (failure_ == cudaSuccess) Check(algorithm(scratch, bytes));
  }

  const WorkStream& work_;
  cudaError_t failure_ = cudaSuccess;
};

}  // namespace millrace::cuda::layers
