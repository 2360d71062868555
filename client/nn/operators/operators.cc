// SPDX-License-Identifier: Apache-2.0
#include "client/nn/operators/operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "client/nn/operators/cpu_kernels.h"

namespace millrace::operators {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;
using Triple = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Finds an operator by its name, with the signature that its kernels have.
template <typename Kernel>
auto Find(const char* name, Kernel*) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .template typed<Kernel>();
}

TORCH_LIBRARY(millrace, library) {
  library.def("self_loops(Tensor indptr, Tensor index) -> (Tensor, Tensor)");
  library.def(
      "full_gcn_weights(Tensor indptr, Tensor index, Tensor degree) -> "
      "(Tensor, Tensor)");
  library.def(
      "sampled_gcn_weights(Tensor indptr, Tensor index, int rows) -> "
      "(Tensor, Tensor)");
  library.def(
      "dropout_mask(Tensor place, int count, int key, int threshold) -> "
      "Tensor");
  library.def(
      "attend(Tensor values, Tensor source_score, Tensor target_score, Tensor "
      "indptr, Tensor index, Tensor mask) -> (Tensor, Tensor)");
  library.def(
      "attend_backward(Tensor grad, Tensor values, Tensor source_score, Tensor "
      "target_score, Tensor indptr, Tensor index, Tensor mask, Tensor weights, "
      "bool needs_values) -> (Tensor, Tensor, Tensor)");
  library.def(
      "attend_v2(Tensor source, Tensor target, Tensor score, Tensor indptr, "
      "Tensor index, Tensor mask) -> (Tensor, Tensor)");
  library.def(
      "attend_v2_backward(Tensor grad, Tensor source, Tensor target, Tensor "
      "score, Tensor indptr, Tensor index, Tensor mask, Tensor weights) -> "
      "(Tensor, Tensor, Tensor)");
  library.def(
      "reduce_lists(Tensor source, Tensor indptr, Tensor index, Tensor weight, "
      "int how) -> (Tensor, Tensor)");
  library.def(
      "reduce_lists_backward(Tensor grad, int sources, Tensor indptr, Tensor "
      "index, Tensor weight, Tensor largest, int how) -> Tensor");
}

TORCH_LIBRARY_IMPL(millrace, CPU, library) {
  library.impl("self_loops", TORCH_FN(cpu::SelfLoops));
  library.impl("full_gcn_weights", TORCH_FN(cpu::FullGcnWeights));
  library.impl("sampled_gcn_weights", TORCH_FN(cpu::SampledGcnWeights));
  library.impl("dropout_mask", TORCH_FN(cpu::DropoutMask));
  library.impl("attend", TORCH_FN(cpu::Attend));
  library.impl("attend_backward", TORCH_FN(cpu::AttendBackward));
  library.impl("attend_v2", TORCH_FN(cpu::AttendV2));
  library.impl("attend_v2_backward", TORCH_FN(cpu::AttendV2Backward));
  library.impl("reduce_lists", TORCH_FN(cpu::ReduceLists));
  library.impl("reduce_lists_backward", TORCH_FN(cpu::ReduceListsBackward));
}

TORCH_LIBRARY_IMPL(millrace, Autograd, library) {
  for (const char* name :
       {"self_loops", "full_gcn_weights", "sampled_gcn_weights", "dropout_mask",
        "attend", "attend_backward", "attend_v2", "attend_v2_backward",
        "reduce_lists", "reduce_lists_backward"}) {
    library.impl(name, torch::CppFunction::makeFallthrough());
  }
}

}  // namespace

Pair SelfLoops(const at::Tensor& indptr, const at::Tensor& index) {
  static const auto op = Find("millrace::self_loops", cpu::SelfLoops);
  return op.call(indptr, index);
}

Pair FullGcnWeights(const at::Tensor& indptr, const at::Tensor& index,
                    const at::Tensor& degree) {
  static const auto op =
      Find("millrace::full_gcn_weights", cpu::FullGcnWeights);
  return op.call(indptr, index, degree);
}

Pair SampledGcnWeights(const at::Tensor& indptr, const at::Tensor& index,
                       int64_t rows) {
  static const auto op =
      Find("millrace::sampled_gcn_weights", cpu::SampledGcnWeights);
  return op.call(indptr, index, rows);
}

at::Tensor DropoutMask(const at::Tensor& place, int64_t count, uint64_t key,
                       int64_t threshold) {
  static const auto op = Find("millrace::dropout_mask", cpu::DropoutMask);
  return op.call(place, count, static_cast<int64_t>(key), threshold);
}

Pair Attend(const at::Tensor& values, const at::Tensor& source_score,
            const at::Tensor& target_score, const AttentionLists& lists) {
  static const auto op = Find("millrace::attend", cpu::Attend);
  return op.call(values, source_score, target_score, lists.indptr, lists.index,
                 lists.mask);
}

Triple AttendBackward(const at::Tensor& grad, const at::Tensor& values,
                      const at::Tensor& source_score,
                      const at::Tensor& target_score,
                      const AttentionLists& lists, const at::Tensor& weights,
                      bool needs_values) {
  static const auto op = Find("millrace::attend_backward", cpu::AttendBackward);
  return op.call(grad, values, source_score, target_score, lists.indptr,
                 lists.index, lists.mask, weights, needs_values);
}

Pair AttendV2(const at::Tensor& source, const at::Tensor& target,
              const at::Tensor& score, const AttentionLists& lists) {
  static const auto op = Find("millrace::attend_v2", cpu::AttendV2);
  return op.call(source, target, score, lists.indptr, lists.index, lists.mask);
}

Triple AttendV2Backward(const at::Tensor& grad, const at::Tensor& source,
                        const at::Tensor& target, const at::Tensor& score,
                        const AttentionLists& lists,
                        const at::Tensor& weights) {
  static const auto op =
      Find("millrace::attend_v2_backward", cpu::AttendV2Backward);
  return op.call(grad, source, target, score, lists.indptr, lists.index,
                 lists.mask, weights);
}

Pair ReduceLists(Reduction how, const at::Tensor& source,
                 const ReducedLists& lists) {
  static const auto op = Find("millrace::reduce_lists", cpu::ReduceLists);
  return op.call(source, lists.indptr, lists.index, lists.weight,
                 static_cast<int64_t>(how));
}

at::Tensor ReduceListsBackward(Reduction how, const at::Tensor& grad,
                               int64_t sources, const ReducedLists& lists,
                               const at::Tensor& largest) {
  static const auto op =
      Find("millrace::reduce_lists_backward", cpu::ReduceListsBackward);
  return op.call(grad, sources, lists.indptr, lists.index, lists.weight,
                 largest, static_cast<int64_t>(how));
}

}  // namespace millrace::operators
