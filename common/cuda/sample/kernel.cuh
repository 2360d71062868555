// SPDX-License-Identifier: Apache-2.0
// What all kernels use. They are compiled by nvcc, or in tests as C++, after
// tests/support/cuda_threads.h. Each .cuh file with kernels may be included by
// one .cu file of a program only.
//
// Kernels take any grid, since their threads step over the work, whose size
// they often read from the device's memory. Blocks have up to kMaxBlock
// threads; those of kernels that use warps or shared memory have a multiple of
// kWarp.
#pragma once

#include <cstdint>

// Stands before a loop whose steps load independent words, so that those of
// four steps are on their way at once.
#if defined(__CUDACC__)
#define MILLRACE_UNROLL _Pragma("unroll 4")
#else
#define MILLRACE_UNROLL
#endif

namespace millrace::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kMaxBlock = 256;

__device__ inline uint64_t ThreadOfGrid() {
  return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline uint64_t ThreadsOfGrid() {
  return uint64_t{gridDim.x} * blockDim.x;
}

// A load of a word that other threads change by atomic operations meanwhile.
template <typename T>
__device__ T RelaxedLoad(T* word) {
#if defined(__CUDACC__)
  return *static_cast<volatile T*>(word);
#else
  return std::atomic_ref<T>(*word).load(std::memory_order_relaxed);
#endif
}

// The first position of the ascending `values` whose value exceeds `value`. The
// steps are those of libstdc++'s std::upper_bound, so that the result is also
// the same where damaged values do not ascend.
template <typename T>
__device__ int64_t UpperBound(const T* values, int64_t size, T value) {
  int64_t first = 0;
  while (size > 0) {
    const int64_t half = size / 2;
    if (value < values[first + half]) {
      size = half;
    } else {
      first += half + 1;
      size -= half + 1;
    }
  }
  return first;
}

// What made a batch impossible on the device; bits of one word. Whoever reads a
// word that is not 0 makes the batch on the CPU instead, which gives it or says
// exactly what is wrong.
enum Trouble : uint32_t {
  kForeignId = 1,        // no partition owns an id of the frontier
  kDamagedIndptr = 2,    // a list leaves its file
  kDamagedNeighbor = 4,  // a neighbour that is not a node
  kOddWeights = 8,       // sums of weights that do not ascend
  kTooMany = 16,         // more rows than a batch or an array can hold
  kBadRow = 32,          // a row beyond its column
};

__device__ inline void Report(uint32_t* trouble, Trouble what) {
  // Most threads find the bit set already in a file that is damaged throughout.
  if ((RelaxedLoad(trouble) & what) == 0) {
    atomicOr(trouble, static_cast<uint32_t>(what));
  }
}

}  // namespace millrace::cuda
