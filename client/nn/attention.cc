// SPDX-License-Identifier: Apache-2.0
#include "client/nn/attention.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "client/nn/operators/operators.h"
#include "client/tensor/batch_tensors.h"

namespace millrace {
namespace {

class Attention final : public torch::autograd::Function<Attention> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& values,
                            const at::Tensor& source_score,
                            const at::Tensor& target_score,
                            const at::Tensor& indptr, const at::Tensor& index,
                            const at::Tensor& mask) {
    const auto [sums, weights] = operators::Attend(
        values, source_score, target_score, {indptr, index, mask});
    context->save_for_backward(
        {values, source_score, target_score, indptr, index, mask, weights});
    return sums;
  }

  static Tensors backward(Context* context, Tensors grads) {
    const Tensors saved = context->get_saved_variables();
    // Raw features of the first layer need no gradient.
    const bool needs_values = context->needs_input_grad(0);
    auto [values, source_score, target_score] = operators::AttendBackward(
        grads[0].contiguous(), saved[0], saved[1], saved[2],
        {saved[3], saved[4], saved[5]}, saved[6], needs_values);
    return {needs_values ? values : at::Tensor(),
            source_score,
            target_score,
            {},
            {},
            {}};
  }
};

}  // namespace

at::Tensor AttentionDropout(const Neighbors& neighbors, int64_t heads,
                            double rate, const DropoutKey& key, int place) {
  const int64_t edges = neighbors.index.size(0);
  const at::Tensor factors =
      DropoutFactors(edges * heads, neighbors.index, rate, key, place);
  return factors.defined() ? factors.view({edges, heads}) : factors;
}

at::Tensor DefinedMask(const at::Tensor& mask, const at::Tensor& place) {
  return mask.defined() ? mask
                        : at::empty({0}, place.options().dtype(at::kFloat));
}

at::Tensor AttendToNeighbors(const AttentionInput& input,
                             const Neighbors& neighbors) {
  return Attention::apply(
      AsFloat(input.values).contiguous(),
      AsFloat(input.source_score).contiguous(),
      AsFloat(input.target_score).contiguous(), neighbors.indptr.contiguous(),
      neighbors.index.contiguous(), DefinedMask(input.mask, input.values));
}

}  // namespace millrace
