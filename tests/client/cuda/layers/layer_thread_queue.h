// SPDX-License-Identifier: Apache-2.0
// A queue for the operators of client/cuda/layers/ that runs kernels on CPU
// threads. Must be included before the kernels.
#pragma once

#include "tests/support/cuda_threads.h"
// The words of CUDA C++ come first.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "client/cuda/layers/for_each.cuh"

namespace millrace::testing {

class LayerThreadQueue {
 public:
  // Fresh memory is 0xCD.
  template <typename T>
  T* Allocate(int64_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes == 0) return nullptr;
    memory_.push_back(std::make_unique<char[]>(bytes));
    std::memset(memory_.back().get(), 0xCD, bytes);
    return reinterpret_cast<T*>(memory_.back().get());
  }

  template <typename Task>
  void ForEach(const Task& task, int64_t rows, int64_t columns) {
    const int64_t cells = rows * columns;
    if (cells == 0) return;
    // Few threads find the same races sooner.
    constexpr int64_t kThreads = 6;
    RunKernel(cuda::layers::ForEachCell<Task>, cells > kThreads ? 2 : 1,
              static_cast<unsigned>(std::min(cells, kThreads)), task, rows,
              columns);
  }
  template <typename Task>
  void ForEachByWarp(const Task& task, int64_t rows, int64_t columns) {
    const int64_t cells = rows * columns;
    if (cells == 0) return;
    RunKernel(cuda::layers::ForEachCellByWarp<Task>, 1, Block(cells), task,
              rows, columns);
  }
  template <typename Task>
  void SumForEach(const Task& task, int64_t rows, int64_t columns,
                  unsigned lane_bits) {
    const int64_t threads = (rows * columns) << lane_bits;
    if (threads == 0) return;
    const int64_t warps = (threads + cuda::kWarp - 1) / cuda::kWarp;
    RunKernel(cuda::layers::SumForEachCell<Task>, 1, Block(warps), task, rows,
              columns, lane_bits);
  }

  void ExclusiveSum(const int32_t* from, int32_t* to, int64_t count) {
    std::exclusive_scan(from, from + count, to, 0);
  }
  void SortPairs(const int32_t* keys, int32_t* sorted_keys,
                 const int32_t* values, int32_t* sorted_values, int64_t count,
                 int bits) {
    std::vector<int64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](int64_t i) {
      return keys[i] & ((int64_t{1} << bits) - 1);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return key(a) < key(b); });
    for (int64_t i = 0; i < count; ++i) {
      sorted_keys[i] = keys[order[i]];
      sorted_values[i] = values[order[i]];
    }
  }

 private:
  // Up to two warps.
  static unsigned Block(int64_t warps) {
    return cuda::kWarp * static_cast<unsigned>(std::min<int64_t>(warps, 2));
  }

  std::vector<std::unique_ptr<char[]>> memory_;
};

}  // namespace millrace::testing
