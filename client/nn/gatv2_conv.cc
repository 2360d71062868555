// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "client/nn/attention.h"
#include "client/nn/conv.h"
#include "client/nn/layer_spec.h"
#include "client/nn/operators/operators.h"
#include "client/nn/parameters.h"
#include "client/tensor/batch_tensors.h"

namespace millrace {
namespace {

// [rows, H, C]: for each head, the sum over each row's neighbours weighted by
// the softmax of score . LeakyReLU_0.2(source + target) over the row's list,
// times `mask` if that is not empty; 0 for an empty list. Sums are computed in
// the same order for any number of threads.
class Gatv2Attention final : public torch::autograd::Function<Gatv2Attention> {
 public:
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor forward(Context* context, const at::Tensor& source,
                            const at::Tensor& target, const at::Tensor& score,
                            const at::Tensor& indptr, const at::Tensor& index,
                            const at::Tensor& mask) {
    const auto [sums, weights] =
        operators::AttendV2(source, target, score, {indptr, index, mask});
    context->save_for_backward(
        {source, target, score, indptr, index, mask, weights});
    return sums;
  }

  static Tensors backward(Context* context, Tensors grads) {
    const Tensors saved = context->get_saved_variables();
    auto [source, target, score] = operators::AttendV2Backward(
        grads[0].contiguous(), saved[0], saved[1], saved[2],
        {saved[3], saved[4], saved[5]}, saved[6]);
    return {source, target, score, {}, {}, {}};
  }
};

// Graph attention that ranks neighbours by the node that attends to them
// (Brody et al. 2022), as PyG's GATv2Conv without edge features and with
// separate weights for source and target. Self loops and heads are treated as
// in GatConv.
class Gatv2Conv final : public Conv {
 public:
  // Adds PREFIX.att, PREFIX.bias, and PREFIX.lin_l (of sources) and
  // PREFIX.lin_r (of targets), each with weight and bias.
  Gatv2Conv(const LayerSpec& spec, ParameterSet& parameters,
            Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  const int64_t out_;
  const int heads_;
  const bool concat_;
  const int64_t width_;   // of one head
  const double dropout_;  // on attention weights, while training
  const int dropout_place_;
  const at::Tensor score_;                        // [1, heads, width]
  const at::Tensor bias_;                         // [out]
  const at::Tensor source_weight_, source_bias_;  // [heads * width, in]; [..]
  const at::Tensor target_weight_, target_bias_;
};

Gatv2Conv::Gatv2Conv(const LayerSpec& spec, ParameterSet& parameters,
                     Initializer& initializer)
    : out_(spec.out),
      heads_(spec.config.heads),
      concat_(!spec.last),
      width_(concat_ ? out_ / heads_ : out_),
      dropout_(spec.config.dropout),
      dropout_place_(spec.dropout_place),
      score_(parameters.AddParameter(
          spec.prefix + ".att",
          initializer.Glorot(heads_, width_).unsqueeze_(0))),
      bias_(parameters.AddParameter(spec.prefix + ".bias",
                                    at::zeros({out_}, at::kFloat))),
      source_weight_(parameters.AddParameter(
          spec.prefix + ".lin_l.weight",
          initializer.Glorot(heads_ * width_, spec.in))),
      source_bias_(parameters.AddParameter(
          spec.prefix + ".lin_l.bias",
          initializer.LinearBias(heads_ * width_, spec.in))),
      target_weight_(parameters.AddParameter(
          spec.prefix + ".lin_r.weight",
          initializer.Glorot(heads_ * width_, spec.in))),
      target_bias_(parameters.AddParameter(
          spec.prefix + ".lin_r.bias",
          initializer.LinearBias(heads_ * width_, spec.in))) {}

at::Tensor Gatv2Conv::Forward(const at::Tensor& source,
                              const at::Tensor& target,
                              const Neighbors& neighbors,
                              const Pass& pass) const {
  const at::Tensor mask =
      AttentionDropout(neighbors, heads_, pass.training ? dropout_ : 0,
                       pass.dropout, dropout_place_);
  const at::Tensor sum = Gatv2Attention::apply(
      AsFloat(at::linear(source, source_weight_, source_bias_)).contiguous(),
      AsFloat(at::linear(target, target_weight_, target_bias_)).contiguous(),
      score_, neighbors.indptr.contiguous(), neighbors.index.contiguous(),
      DefinedMask(mask, source));
  const at::Tensor joined =
      concat_ ? sum.reshape({sum.size(0), out_}) : sum.mean(1);
  return joined.add(bias_);
}

}  // namespace

std::unique_ptr<Conv> MakeGatv2Conv(const LayerSpec& spec,
                                    ParameterSet& parameters,
                                    Initializer& initializer) {
  return std::make_unique<Gatv2Conv>(spec, parameters, initializer);
}

}  // namespace millrace
