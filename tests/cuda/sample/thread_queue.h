// SPDX-License-Identifier: Apache-2.0
// A queue for HopSampler that runs kernels on CPU threads. Must be included
// before the kernels.
#pragma once

#include "tests/support/cuda_threads.h"
// The words of CUDA C++ come first.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tests/cuda/sample/queue_counts.h"

namespace millrace::testing {

class ThreadQueue : public QueueCounts {
 public:
  // Blocks that work together have up to `block` threads.
  explicit ThreadQueue(unsigned block = 32) : block_(block) {}

  void* Allocate(size_t bytes) {
    if (failed_ || !MayAllocate()) return nullptr;
    void* data = std::malloc(bytes);
    std::memset(data, 0xCD, bytes);
    ++live_;
    return data;
  }
  void Free(void* data) {
    std::free(data);
    --live_;
  }
  void Copy(void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
  }
  void Upload(void* to, const void* from, size_t bytes) {
    std::memcpy(to, from, bytes);
  }
  bool Download(void* to, const void* from, size_t bytes) {
    ++waits_;
    if (!failed_) std::memcpy(to, from, bytes);
    return !failed_;
  }
  // Few threads find the same races sooner.
  template <typename... Parameters, typename... Arguments>
  void LaunchEach(void (*kernel)(Parameters...), uint64_t work,
                  Arguments... arguments) {
    constexpr uint64_t kMaxThreads = 6;
    const uint64_t threads = std::min(work, kMaxThreads);
    RunKernel(kernel, work > threads ? 2 : 1, static_cast<unsigned>(threads),
              arguments...);
  }
  template <typename... Parameters, typename... Arguments>
  void LaunchBlocks(void (*kernel)(Parameters...), uint64_t blocks,
                    unsigned threads, Arguments... arguments) {
    constexpr uint64_t kMaxGrid = 2;
    RunKernel(kernel, static_cast<unsigned>(std::min(blocks, kMaxGrid)),
              std::min(threads, block_), arguments...);
  }
  void ExclusiveSum(const uint64_t* from, uint64_t* to, uint64_t count) {
    std::exclusive_scan(from, from + count, to, uint64_t{0});
  }

  // Makes the queue fail.
  void Fail() { failed_ = true; }
  bool failed() const { return failed_; }
  // How often the host has waited.
  uint64_t waits() const { return waits_; }

 private:
  const unsigned block_;
  bool failed_ = false;
  uint64_t waits_ = 0;
};

}  // namespace millrace::testing
