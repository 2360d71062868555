// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/bmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include "client/nn/attention.h"
#include "client/nn/conv.h"
#include "client/nn/layer_spec.h"
#include "client/nn/parameters.h"

namespace millrace {
namespace {

// Graph attention (Velickovic et al. 2018), as PyG's GATConv without edge
// features. Adds no self loops: the lists must contain them if wanted. The
// heads' columns are concatenated, in the last layer averaged. On graphs of
// several relations it has separate weights for source and target.
class GatConv final : public Conv {
 public:
  // Adds PREFIX.att_src, PREFIX.att_dst, PREFIX.bias and PREFIX.lin.weight, or
  // PREFIX.lin_src.weight and PREFIX.lin_dst.weight instead of the last.
  GatConv(const LayerSpec& spec, ParameterSet& parameters,
          Initializer& initializer);

  at::Tensor Forward(const at::Tensor& source, const at::Tensor& target,
                     const Neighbors& neighbors,
                     const Pass& pass) const override;

 private:
  // [rows, heads]: the scores that the attention vector `score` [1, heads,
  // width] gives to the projections of `rows`, computed without projecting
  // them.
  at::Tensor Scores(const at::Tensor& rows, const at::Tensor& weight,
                    const at::Tensor& score) const;

  const int64_t in_, out_;
  const int heads_;
  const bool concat_;
  const int64_t width_;   // of one head
  const double dropout_;  // on attention weights, while training
  const int dropout_place_;
  const at::Tensor source_score_;   // [1, heads, width]
  const at::Tensor target_score_;   // [1, heads, width]
  const at::Tensor bias_;           // [out]
  const at::Tensor source_weight_;  // [heads * width, in]
  // Shares source_weight_ on homogeneous graphs.
  const at::Tensor target_weight_;
};

GatConv::GatConv(const LayerSpec& spec, ParameterSet& parameters,
                 Initializer& initializer)
    : in_(spec.in),
      out_(spec.out),
      heads_(spec.config.heads),
      concat_(!spec.last),
      width_(concat_ ? out_ / heads_ : out_),
      dropout_(spec.config.dropout),
      dropout_place_(spec.dropout_place),
      source_score_(parameters.AddParameter(
          spec.prefix + ".att_src",
          initializer.Glorot(heads_, width_).unsqueeze_(0))),
      target_score_(parameters.AddParameter(
          spec.prefix + ".att_dst",
          initializer.Glorot(heads_, width_).unsqueeze_(0))),
      bias_(parameters.AddParameter(spec.prefix + ".bias",
                                    at::zeros({out_}, at::kFloat))),
      source_weight_(parameters.AddParameter(
          spec.prefix +
              (spec.shape.homogeneous() ? ".lin.weight" : ".lin_src.weight"),
          initializer.Glorot(heads_ * width_, in_))),
      target_weight_(spec.shape.homogeneous()
                         ? source_weight_
                         : parameters.AddParameter(
                               spec.prefix + ".lin_dst.weight",
                               initializer.Glorot(heads_ * width_, in_))) {}

at::Tensor GatConv::Scores(const at::Tensor& rows, const at::Tensor& weight,
                           const at::Tensor& score) const {
  const at::Tensor combined = weight.view({heads_, width_, in_})
                                  .mul(score.squeeze(0).unsqueeze(2))
                                  .sum(1);
  return at::linear(rows, combined);
}

at::Tensor GatConv::Forward(const at::Tensor& source, const at::Tensor& target,
                            const Neighbors& neighbors,
                            const Pass& pass) const {
  AttentionInput input;
  input.values = source;
  input.source_score = Scores(source, source_weight_, source_score_);
  input.target_score = Scores(target, target_weight_, target_score_);
  input.mask = AttentionDropout(neighbors, heads_, pass.training ? dropout_ : 0,
                                pass.dropout, dropout_place_);
  // The projection is linear, so it can be applied after the sum.
  const at::Tensor sum = AttendToNeighbors(input, neighbors);
  const at::Tensor weight = source_weight_.view({heads_, width_, in_});
  const at::Tensor heads = at::bmm(sum.transpose(0, 1), weight.transpose(1, 2));
  const at::Tensor joined =
      concat_ ? heads.transpose(0, 1).reshape({sum.size(0), out_})
              : heads.mean(0);
  return joined.add(bias_);
}

}  // namespace

std::unique_ptr<Conv> MakeGatConv(const LayerSpec& spec,
                                  ParameterSet& parameters,
                                  Initializer& initializer) {
  return std::make_unique<GatConv>(spec, parameters, initializer);
}

}  // namespace millrace
