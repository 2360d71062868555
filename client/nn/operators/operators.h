// SPDX-License-Identifier: Apache-2.0
// Operators of our own. LibTorch's dispatcher finds the kernel for the device
// of their tensors: cpu_kernels.h has those of the CPU, and client/cuda/ those
// of GPUs. On any other device LibTorch can run the CPU's on copies.
//
// Lists of neighbours are CSR: row i's list is the edges indptr[i] to
// indptr[i + 1] - 1; indptr is [rows + 1] and index [e], both kInt. Matrices
// are kFloat and contiguous. Operators have no derivatives. They throw what
// LibTorch throws. Threads: any.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

namespace millrace::operators {

// Lists of graphs in which node i is row i on both sides, with each node's self
// loops replaced by exactly one, at the end of its list. Returns (indptr,
// index).
std::tuple<at::Tensor, at::Tensor> SelfLoops(const at::Tensor& indptr,
                                             const at::Tensor& index);

// Weights of edges, [e], and of the nodes themselves, [rows]; see GcnWeights in
// aggregate.h. `degree` has a number per node, and lists may have fewer rows.
std::tuple<at::Tensor, at::Tensor> FullGcnWeights(const at::Tensor& indptr,
                                                  const at::Tensor& index,
                                                  const at::Tensor& degree);
std::tuple<at::Tensor, at::Tensor> SampledGcnWeights(const at::Tensor& indptr,
                                                     const at::Tensor& index,
                                                     int64_t rows);

// Returns [count] on the device of `place`: element i is 0 if the i-th 16-bit
// number that Philox draws with `key` is below `threshold`, in [1, 65536], and
// otherwise what keeps the mean of many elements at 1.
at::Tensor DropoutMask(const at::Tensor& place, int64_t count, uint64_t key,
                       int64_t threshold);

// What attention reads, with H heads. An empty `mask` means that there is none.
struct AttentionLists {
  at::Tensor indptr;
  at::Tensor index;
  at::Tensor mask;  // [e, H]: factors of the weights
};

// The attention of AttendToNeighbors in attention.h, for values [s, C] and
// scores [s, H] and [rows, H]. Returns the sums, [rows, H, C], and the weights
// before the mask, [e, H].
std::tuple<at::Tensor, at::Tensor> Attend(const at::Tensor& values,
                                          const at::Tensor& source_score,
                                          const at::Tensor& target_score,
                                          const AttentionLists& lists);
// Returns the gradients of (values, source_score, target_score), given that of
// the sums and the weights; the first is empty unless `needs_values`.
std::tuple<at::Tensor, at::Tensor, at::Tensor> AttendBackward(
    const at::Tensor& grad, const at::Tensor& values,
    const at::Tensor& source_score, const at::Tensor& target_score,
    const AttentionLists& lists, const at::Tensor& weights, bool needs_values);

// The attention of GATv2: the scores are score . LeakyReLU_0.2(source +
// target), for source [s, H, C], target [rows, H, C] and score [1, H, C].
// Returns what Attend() does.
std::tuple<at::Tensor, at::Tensor> AttendV2(const at::Tensor& source,
                                            const at::Tensor& target,
                                            const at::Tensor& score,
                                            const AttentionLists& lists);
// Returns the gradients of (source, target, score).
std::tuple<at::Tensor, at::Tensor, at::Tensor> AttendV2Backward(
    const at::Tensor& grad, const at::Tensor& source, const at::Tensor& target,
    const at::Tensor& score, const AttentionLists& lists,
    const at::Tensor& weights);

// How a list of rows becomes one row. The codes are those of the kernels.
enum class Reduction : uint8_t { kSum, kMean, kMax, kWeightedSum };

// Lists whose rows are reduced. `weight` is read only for kWeightedSum.
struct ReducedLists {
  at::Tensor indptr;
  at::Tensor index;
  at::Tensor weight;  // [e]
};

// Reduces the rows of `source` [s, d] over each list, to [rows, d]; 0 for an
// empty list. For kMax also returns the first edge with the largest value of
// each cell, kInt, -1 for an empty list; otherwise that result is unspecified.
std::tuple<at::Tensor, at::Tensor> ReduceLists(Reduction how,
                                               const at::Tensor& source,
                                               const ReducedLists& lists);
// Returns the gradient of the source, of `sources` rows, added up in the order
// of (row, list). `largest` is from ReduceLists().
at::Tensor ReduceListsBackward(Reduction how, const at::Tensor& grad,
                               int64_t sources, const ReducedLists& lists,
                               const at::Tensor& largest);

}  // namespace millrace::operators
