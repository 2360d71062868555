// SPDX-License-Identifier: Apache-2.0
// The operators of client/nn/operators/operators.h and the aggregation of
// client/nn/aggregate.h on GPUs, without LibTorch.
//
// Each call queues kernels on one stream, whose device must be current, and
// returns without waiting. Operands are read and written by that work. Results
// are written whole, except for what LayerLists leaves out; they must not
// overlap operands. Sums have a fixed order, so that results are always the
// same.
//
// Returns the first error of the runtime that the launches met, or
// cudaErrorMemoryAllocation if `work.allocate` returned null; errors of the
// kernels themselves come later, as always in CUDA. After an error results are
// undefined.
// Threads: any.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client/cuda/layers/operands.h"
#include "client/cuda/layers/work_stream.h"

namespace millrace::cuda::layers {

// The results of the next four are the CPU's to the last bit.
//
// Replaces each row's self loops, of which there may be any number, by one at
// the end of its list. The host does not learn how many edges there are then:
// other operators take the result as LayerLists{looped.indptr,
// looped.index, lists.rows, lists.edges + lists.rows}.
// Workspace: 4 bytes a row, and what a scan of as many numbers takes.
[[nodiscard]] cudaError_t SelfLoops(const LayerLists& lists,
                                    const LoopedLists& looped,
                                    const WorkStream& work);
// `degree` has a number for each of `nodes` nodes, of which the first have
// lists. Workspace: 4 bytes a node.
[[nodiscard]] cudaError_t FullGcnWeights(const LayerLists& lists,
                                         const int32_t* degree, int64_t nodes,
                                         const GcnWeights& weights,
                                         const WorkStream& work);
// Workspace: 4 bytes a node.
[[nodiscard]] cudaError_t SampledGcnWeights(const LayerLists& lists,
                                            int64_t nodes,
                                            const GcnWeights& weights,
                                            const WorkStream& work);
// Writes mask[0] to mask[count - 1]; `mask` must be aligned to 16 bytes.
// Workspace: none.
[[nodiscard]] cudaError_t DropoutMask(uint64_t key, int64_t threshold,
                                      int64_t count, float* mask,
                                      const WorkStream& work);

// Writes the reduction of `source` [sources, width] over each list to `out`
// [rows, width]; 0 for an empty list. For kMax, `largest_edge` [rows, width]
// gets the first edge with the largest value, -1 for an empty list, unless it
// is null. Sums are in the list's order: for kSum, kMean and kMax the bits are
// those of at::embedding_bag on the CPU. Weighted terms are not rounded before
// they are added. Workspace: none.
[[nodiscard]] cudaError_t Aggregate(const Aggregation& input,
                                    const float* source, float* out,
                                    int32_t* largest_edge,
                                    const WorkStream& work);
// Writes the gradient of the source, [sources, width], given that of the
// result, `grad`. `largest_edge` is read for kMax only. Adds up in the order of
// rows, which for kMax gives the CPU's bits.
// Workspace: 20 bytes an edge and 4 a source, and what a sort of the edges
// takes (about 8 bytes an edge).
[[nodiscard]] cudaError_t AggregateBackward(const Aggregation& input,
                                            const float* grad,
                                            const int32_t* largest_edge,
                                            float* source_grad,
                                            const WorkStream& work);

// Attention differs from the CPU's in the last bits only: `exp` is rounded
// differently, and warps add up denominators and products in another order. The
// tests allow 1e-5 of the largest element of each result.
//
// Workspace: none.
[[nodiscard]] cudaError_t Attend(const Attention& input, const Attended& out,
                                 const WorkStream& work);
// Workspace: that of AggregateBackward(), and 4 + 4 H bytes an edge.
[[nodiscard]] cudaError_t AttendBackward(const Attention& input,
                                         const AttendedGradient& grad,
                                         const AttentionGradients& out,
                                         const WorkStream& work);
// Workspace: 4 bytes an edge.
[[nodiscard]] cudaError_t AttendV2(const AttentionV2& input,
                                   const Attended& out, const WorkStream& work);
// Workspace: that of AttendBackward(), and 4 H C bytes a row and a 64th more.
[[nodiscard]] cudaError_t AttendV2Backward(const AttentionV2& input,
                                           const AttendedGradient& grad,
                                           const AttentionV2Gradients& out,
                                           const WorkStream& work);

}  // namespace millrace::cuda::layers
