// SPDX-License-Identifier: Apache-2.0
#include "client/nn/gat_conv.h"

#include <ATen/ops/bmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "client/nn/attention.h"

namespace millrace {

GatConv::GatConv(const std::string& prefix, const GatOptions& options,
                 ParameterSet& parameters, Initializer& initializer)
    : options_(options),
      width_(options.concat ? options.out / options.heads : options.out),
      source_score_(parameters.AddParameter(
          prefix + ".att_src",
          initializer.Glorot(options.heads, width_).unsqueeze_(0))),
      target_score_(parameters.AddParameter(
          prefix + ".att_dst",
          initializer.Glorot(options.heads, width_).unsqueeze_(0))),
      bias_(parameters.AddParameter(prefix + ".bias",
                                    at::zeros({options.out}, at::kFloat))),
      source_weight_(parameters.AddParameter(
          prefix + (options.bipartite ? ".lin_src.weight" : ".lin.weight"),
          initializer.Glorot(options.heads * width_, options.in))),
      target_weight_(
          options.bipartite
              ? parameters.AddParameter(
                    prefix + ".lin_dst.weight",
                    initializer.Glorot(options.heads * width_, options.in))
              : source_weight_) {}

at::Tensor GatConv::Scores(const at::Tensor& rows, const at::Tensor& weight,
                           const at::Tensor& score) const {
  const at::Tensor combined = weight.view({options_.heads, width_, options_.in})
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
  if (pass.training && options_.dropout > 0) {
    input.mask =
        Dropout(at::ones({neighbors.index.size(0), options_.heads}, at::kFloat),
                options_.dropout, pass.dropout, options_.dropout_layer);
  }
  // The projection is linear, so it can be applied after the sum.
  const at::Tensor sum = AttendToNeighbors(input, neighbors);
  const at::Tensor weight =
      source_weight_.view({options_.heads, width_, options_.in});
  const at::Tensor heads = at::bmm(sum.transpose(0, 1), weight.transpose(1, 2));
  const at::Tensor joined =
      options_.concat
          ? heads.transpose(0, 1).reshape({sum.size(0), options_.out})
          : heads.mean(0);
  return joined.add(bias_);
}

}  // namespace millrace
