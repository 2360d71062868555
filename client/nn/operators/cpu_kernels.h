// SPDX-License-Identifier: Apache-2.0
// The operators of operators.h on the CPU, with the arguments of their schemas.
// They use the threads of LibTorch and give the same bits for any number of
// them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <tuple>

namespace millrace::operators::cpu {

std::tuple<at::Tensor, at::Tensor> SelfLoops(const at::Tensor& indptr,
                                             const at::Tensor& index);
std::tuple<at::Tensor, at::Tensor> FullGcnWeights(const at::Tensor& indptr,
                                                  const at::Tensor& index,
                                                  const at::Tensor& degree);
std::tuple<at::Tensor, at::Tensor> SampledGcnWeights(const at::Tensor& indptr,
                                                     const at::Tensor& index,
                                                     int64_t rows);
// `key` has the bits of an unsigned number.
at::Tensor DropoutMask(const at::Tensor& place, int64_t count, int64_t key,
                       int64_t threshold);
std::tuple<at::Tensor, at::Tensor> Attend(const at::Tensor& values,
                                          const at::Tensor& source_score,
                                          const at::Tensor& target_score,
                                          const at::Tensor& indptr,
                                          const at::Tensor& index,
                                          const at::Tensor& mask);
std::tuple<at::Tensor, at::Tensor, at::Tensor> AttendBackward(
    const at::Tensor& grad, const at::Tensor& values,
    const at::Tensor& source_score, const at::Tensor& target_score,
    const at::Tensor& indptr, const at::Tensor& index, const at::Tensor& mask,
    const at::Tensor& weights, bool needs_values);
std::tuple<at::Tensor, at::Tensor> AttendV2(
    const at::Tensor& source, const at::Tensor& target, const at::Tensor& score,
    const at::Tensor& indptr, const at::Tensor& index, const at::Tensor& mask);
std::tuple<at::Tensor, at::Tensor, at::Tensor> AttendV2Backward(
    const at::Tensor& grad, const at::Tensor& source, const at::Tensor& target,
    const at::Tensor& score, const at::Tensor& indptr, const at::Tensor& index,
    const at::Tensor& mask, const at::Tensor& weights);

// `how` is a Reduction.
std::tuple<at::Tensor, at::Tensor> ReduceLists(const at::Tensor& source,
                                               const at::Tensor& indptr,
                                               const at::Tensor& index,
                                               const at::Tensor& weight,
                                               int64_t how);
at::Tensor ReduceListsBackward(const at::Tensor& grad, int64_t sources,
                               const at::Tensor& indptr,
                               const at::Tensor& index,
                               const at::Tensor& weight,
                               const at::Tensor& largest, int64_t how);

}  // namespace millrace::operators::cpu
