// SPDX-License-Identifier: Apache-2.0
#include "client/nn/list_reduction.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "client/tensor/batch_tensors.h"

namespace millrace {
namespace {

class ListReduction final : public torch::autograd::Function<ListReduction> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& source,
                            const at::Tensor& indptr, const at::Tensor& index,
                            const at::Tensor& weight, int64_t how) {
    const auto [rows, largest] =
        operators::ReduceLists(static_cast<operators::Reduction>(how), source,
                               {indptr, index, weight});
    context->save_for_backward({indptr, index, weight, largest});
    context->saved_data["how"] = how;
    context->saved_data["sources"] = source.size(0);
    return rows;
  }

  static Tensors backward(Context* context, Tensors grads) {
    const Tensors saved = context->get_saved_variables();
    return {operators::ReduceListsBackward(
                static_cast<operators::Reduction>(
                    context->saved_data["how"].toInt()),
                grads[0].contiguous(), context->saved_data["sources"].toInt(),
                {saved[0], saved[1], saved[2]}, saved[3]),
            {},
            {},
            {},
            {}};
  }
};

}  // namespace

at::Tensor ReduceNeighbors(operators::Reduction how, const at::Tensor& source,
                           const Neighbors& neighbors) {
  // A custom Function accepts no undefined tensors.
  const bool weighted = how == operators::Reduction::kWeightedSum;
  const at::Tensor weight =
      weighted ? neighbors.edge_weight.contiguous()
               : at::empty({0}, source.options().dtype(at::kFloat));
  return ListReduction::apply(
      AsFloat(source).contiguous(), neighbors.indptr.contiguous(),
      neighbors.index.contiguous(), weight, static_cast<int64_t>(how));
}

}  // namespace millrace
