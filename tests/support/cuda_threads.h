// SPDX-License-Identifier: Apache-2.0
// Runs kernels on CPU threads: the words of CUDA C++ that kernels use, for a
// C++ compiler. A file must include it before the kernels.
//
// Every CUDA thread is a real thread, so that ThreadSanitizer finds races
// within a block, and AddressSanitizer finds accesses outside of arrays. All
// threads of a block start together. The blocks of a grid run one after
// another, so races between blocks stay hidden. Atomic operations are relaxed,
// as CUDA's are.
//
// Mistakes that hardware need not report end the program with a message: a lane
// that leaves itself out of its mask, and a mask with a lane that has ended.
#pragma once

#if defined(__CUDACC__)
#error "nvcc has its own words"
#endif

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>

namespace millrace::testing {

struct KernelPlace {
  unsigned x = 0, y = 0, z = 0;
};

// Where the calling thread is, and the sizes of its block and grid.
extern thread_local KernelPlace kernel_thread, kernel_block, kernel_block_size,
    kernel_grid_size;

constexpr unsigned kWarpLanes = 32;
using LaneValues = uint64_t[kWarpLanes];

// Runs `thread` once for each thread of each block, and returns when all have
// ended. One call at a time; `grid` and `block` must be positive.
void RunBlocks(unsigned grid, unsigned block,
               const std::function<void()>& thread);

template <typename... Parameters, typename... Arguments>
void RunKernel(void (*kernel)(Parameters...), unsigned grid, unsigned block,
               Arguments... arguments) {
  RunBlocks(grid, block, [&] { kernel(arguments...); });
}

// Waits until all threads of the block that have not ended have called it.
void MeetBlock();

// Waits until all lanes in `mask` have called it, and returns their values. The
// result is valid until the calling lane meets the same mask again.
const LaneValues& MeetWarp(unsigned mask, uint64_t value);

inline unsigned KernelLane() { return kernel_thread.x % kWarpLanes; }

// The lanes of `mask` whose value is `value`.
inline unsigned LanesWith(const LaneValues& values, unsigned mask,
                          uint64_t value) {
  unsigned lanes = 0;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if ((mask >> lane & 1) != 0 && values[lane] == value) lanes |= 1u << lane;
  }
  return lanes;
}

}  // namespace millrace::testing

#define __global__ inline
#define __device__
#define __shared__ static  // one block runs at a time
#define __launch_bounds__(threads)
#define threadIdx millrace::testing::kernel_thread
#define blockIdx millrace::testing::kernel_block
#define blockDim millrace::testing::kernel_block_size
#define gridDim millrace::testing::kernel_grid_size

inline void __syncthreads() { millrace::testing::MeetBlock(); }

inline void __syncwarp(unsigned mask = ~0u) {
  millrace::testing::MeetWarp(mask, 0);
}

inline unsigned __ballot_sync(unsigned mask, bool vote) {
  return millrace::testing::LanesWith(
      millrace::testing::MeetWarp(mask, vote ? 1 : 0), mask, 1);
}

template <typename T>
unsigned __match_any_sync(unsigned mask, T value) {
  const auto bits = static_cast<uint64_t>(value);
  return millrace::testing::LanesWith(millrace::testing::MeetWarp(mask, bits),
                                      mask, bits);
}

template <typename T>
T __shfl_sync(unsigned mask, T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = millrace::testing::MeetWarp(
      mask, bits)[lane % millrace::testing::kWarpLanes];
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
T __shfl_xor_sync(unsigned mask, T value, unsigned lane_bits) {
  return __shfl_sync(mask, value, millrace::testing::KernelLane() ^ lane_bits);
}

// The value of the lane `delta` below, or the lane's own if there is none.
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta) {
  const unsigned lane = millrace::testing::KernelLane();
  return __shfl_sync(mask, value, lane >= delta ? lane - delta : lane);
}

inline int __popc(unsigned bits) { return std::popcount(bits); }

template <typename T>
T atomicAdd(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_add(value, std::memory_order_relaxed);
}

template <typename T>
T atomicOr(T* at, T value) {
  return std::atomic_ref<T>(*at).fetch_or(value, std::memory_order_relaxed);
}

template <typename T>
T atomicMin(T* at, T value) {
  const std::atomic_ref<T> word(*at);
  T old = word.load(std::memory_order_relaxed);
  while (value < old &&
         !word.compare_exchange_weak(old, value, std::memory_order_relaxed)) {
  }
  return old;
}

// Returns the old value, which was replaced if it was `expected`.
template <typename T>
T atomicCAS(T* at, T expected, T value) {
  std::atomic_ref<T>(*at).compare_exchange_strong(expected, value,
                                                  std::memory_order_relaxed);
  return expected;
}
