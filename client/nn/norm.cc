// SPDX-License-Identifier: Apache-2.0
#include "client/nn/norm.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace millrace {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;

class BatchNorm final : public Norm {
 public:
  BatchNorm(const std::string& prefix, int64_t width, ParameterSet& parameters)
      : weight_(parameters.AddParameter(prefix + ".module.weight",
                                        at::ones({width}, at::kFloat))),
        bias_(parameters.AddParameter(prefix + ".module.bias",
                                      at::zeros({width}, at::kFloat))),
        mean_(parameters.AddBuffer(prefix + ".module.running_mean",
                                   at::zeros({width}, at::kFloat))),
        variance_(parameters.AddBuffer(prefix + ".module.running_var",
                                       at::ones({width}, at::kFloat))),
        batches_(parameters.AddBuffer(prefix + ".module.num_batches_tracked",
                                      at::zeros({}, at::kLong))) {}

  at::Tensor Forward(const at::Tensor& rows, bool training) override {
    const bool own_statistics = training && rows.size(0) > 1;
    if (own_statistics) batches_.add_(1);
    return at::batch_norm(rows, weight_, bias_, mean_, variance_,
                          own_statistics, kMomentum, kEpsilon,
                          /*cudnn_enabled=*/false);
  }

 private:
  const at::Tensor weight_, bias_;
  const at::Tensor mean_, variance_;
  const at::Tensor batches_;
};

class LayerNorm final : public Norm {
 public:
  LayerNorm(const std::string& prefix, int64_t width, ParameterSet& parameters)
      : width_(width),
        weight_(parameters.AddParameter(prefix + ".weight",
                                        at::ones({width}, at::kFloat))),
        bias_(parameters.AddParameter(prefix + ".bias",
                                      at::zeros({width}, at::kFloat))) {}

  at::Tensor Forward(const at::Tensor& rows, bool) override {
    return at::layer_norm(rows, {width_}, weight_, bias_, kEpsilon);
  }

 private:
  const int64_t width_;
  const at::Tensor weight_, bias_;
};

}  // namespace

std::unique_ptr<Norm> Norm::Create(NormKind kind, const std::string& prefix,
                                   int64_t width, ParameterSet& parameters) {
  switch (kind) {
    case NormKind::kBatch:
      return std::make_unique<BatchNorm>(prefix, width, parameters);
    case NormKind::kLayer:
      return std::make_unique<LayerNorm>(prefix, width, parameters);
    case NormKind::kNone:
      break;
  }
  return nullptr;
}

}  // namespace millrace
