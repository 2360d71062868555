// SPDX-License-Identifier: Apache-2.0
// The kernels of all operators. Each calls an object, the task, for each piece
// of work. Tasks add up in an order that depends on sizes only, and use no
// atomic operations, so that results are always the same.
#pragma once

#include <cstdint>

#include "common/cuda/sample/kernel.cuh"

namespace millrace::cuda::layers {

inline constexpr unsigned kAllLanes = 0xFFFFFFFF;

// Element i of a matrix.
struct Cell {
  int64_t row = 0, column = 0;
};
__device__ inline Cell CellOf(uint64_t i, uint64_t columns) {
  // A division of 64 bits takes several times as long.
  if ((i | columns) >> 32 == 0) {
    const auto low = static_cast<uint32_t>(i);
    const auto divisor = static_cast<uint32_t>(columns);
    return {low / divisor, low % divisor};
  }
  return {static_cast<int64_t>(i / columns), static_cast<int64_t>(i % columns)};
}

// The sum over `lanes` neighbouring lanes, a power of two, which each of them
// gets. All lanes of the warp must call it.
__device__ inline float SumOfLanes(float value, unsigned lanes = kWarp) {
  for (unsigned step = lanes / 2; step > 0; step /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, step);
  }
  return value;
}

// The largest value of a warp.
__device__ inline float MaxOfLanes(float value) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, value, step);
    value = value < other ? other : value;
  }
  return value;
}

// A thread for each cell of [rows, columns]: task(row, column). Threads of
// neighbouring columns read neighbouring words. A thread that adds up a list
// does so alone, in the list's order, so that the longest list says how long a
// launch takes at least.
template <typename Task>
__global__ void __launch_bounds__(kMaxBlock)
    ForEachCell(Task task, uint64_t rows, uint64_t columns) {
  const uint64_t cells = rows * columns;
  for (uint64_t i = ThreadOfGrid(); i < cells; i += ThreadsOfGrid()) {
    const Cell cell = CellOf(i, columns);
    task(cell.row, cell.column);
  }
}

// A warp for each cell of [rows, columns]: task(row, column, lane).
template <typename Task>
__global__ void __launch_bounds__(kMaxBlock)
    ForEachCellByWarp(Task task, uint64_t rows, uint64_t columns) {
  const uint64_t cells = rows * columns;
  const unsigned lane = threadIdx.x % kWarp;
  const uint64_t warps = ThreadsOfGrid() / kWarp;
  for (uint64_t i = ThreadOfGrid() / kWarp; i < cells; i += warps) {
    const Cell cell = CellOf(i, columns);
    task(cell.row, cell.column, lane);
  }
}

// For each cell of [rows, columns], 2^lane_bits neighbouring lanes add up
// task.Part(row, column, first, step), and one of them calls task.Write(row,
// column, sum). A part has the terms first, first + step and so on.
template <typename Task>
__global__ void __launch_bounds__(kMaxBlock)
    SumForEachCell(Task task, uint64_t rows, uint64_t columns,
                   unsigned lane_bits) {
  const uint64_t threads = rows * columns << lane_bits;
  const unsigned lanes = 1u << lane_bits;
  const unsigned lane = threadIdx.x % kWarp;
  // All lanes of a warp take part in its last sums.
  for (uint64_t i = ThreadOfGrid(); i - lane < threads; i += ThreadsOfGrid()) {
    const Cell cell = CellOf(i >> lane_bits, columns);
    const unsigned first = lane % lanes;
    const float part =
        i < threads ? task.Part(cell.row, cell.column, first, lanes) : 0;
    const float sum = SumOfLanes(part, lanes);
    if (i < threads && first == 0) task.Write(cell.row, cell.column, sum);
  }
}

}  // namespace millrace::cuda::layers
