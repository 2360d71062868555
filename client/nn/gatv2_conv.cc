// SPDX-License-Identifier: Apache-2.0
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "client/nn/attention_kernel.h"
#include "client/nn/conv.h"
#include "client/nn/layer_spec.h"
#include "client/nn/parameters.h"

namespace millrace {
namespace {

// Raw pointers to the lists and matrices of H heads of C columns each.
struct Gatv2Views {
  Gatv2Views(const at::Tensor& source_tensor, const at::Tensor& target_tensor,
             const at::Tensor& score_tensor, const at::Tensor& indptr_tensor,
             const at::Tensor& index_tensor, const at::Tensor& mask_tensor)
      : rows(indptr_tensor.size(0) - 1),
        sources(source_tensor.size(0)),
        heads(score_tensor.size(1)),
        width(score_tensor.size(2)),
        source(source_tensor.const_data_ptr<float>()),
        target(target_tensor.const_data_ptr<float>()),
        score(score_tensor.const_data_ptr<float>()),
        indptr(indptr_tensor.const_data_ptr<int32_t>()),
        index(index_tensor.const_data_ptr<int32_t>()),
        mask(mask_tensor.numel() > 0 ? mask_tensor.const_data_ptr<float>()
                                     : nullptr) {}

  const float* of_source(int32_t edge, int64_t head) const {
    return source + (index[edge] * heads + head) * width;
  }
  const float* of_target(int64_t row, int64_t head) const {
    return target + (row * heads + head) * width;
  }
  float factor(int64_t cell) const {
    return mask == nullptr ? 1.0f : mask[cell];
  }

  const int64_t rows, sources, heads, width;
  const float* const source;  // [sources, H, C]
  const float* const target;  // [rows, H, C]
  const float* const score;   // [1, H, C]
  const int32_t* const indptr;
  const int32_t* const index;
  const float* const mask;  // [e, H]; null if none
};

// The sum over columns of a * LeakyReLU(x + y).
float Score(const float* a, const float* x, const float* y, int64_t n) {
  float sums[4] = {0, 0, 0, 0};  // as in Dot()
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) {
      sums[k] += a[i + k] * LeakyRelu(x[i + k] + y[i + k]);
    }
  }
  for (; i < n; ++i) sums[0] += a[i] * LeakyRelu(x[i] + y[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Adds the gradient of either end's columns that the score's gradient implies.
void AddScoreGradient(float gradient, const float* a, const float* x,
                      const float* y, int64_t n, float* end) {
  for (int64_t i = 0; i < n; ++i) {
    end[i] += gradient * a[i] * LeakyReluSlope(x[i] + y[i]);
  }
}

// Adds the gradient of the attention vector.
void AddVectorGradient(float gradient, const float* x, const float* y,
                       int64_t n, float* vector) {
  for (int64_t i = 0; i < n; ++i)
    vector[i] += gradient * LeakyRelu(x[i] + y[i]);
}

// Writes the attention weights of a row's list and adds up its neighbours.
void AttendRow(const Gatv2Views& views, int64_t row, float* weights,
               float* sums) {
  const int32_t begin = views.indptr[row], end = views.indptr[row + 1];
  for (int64_t head = 0; head < views.heads; ++head) {
    const float* target = views.of_target(row, head);
    const float* score = views.score + head * views.width;
    for (int32_t e = begin; e < end; ++e) {
      weights[e * views.heads + head] =
          Score(score, views.of_source(e, head), target, views.width);
    }
    Softmax(begin, end, views.heads, weights + head);
    float* sum = sums + (row * views.heads + head) * views.width;
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      AddScaled(weights[cell] * views.factor(cell), views.of_source(e, head),
                views.width, sum);
    }
  }
}

// The gradients that a row's sums `grad` [H, C] give to the scores of its list,
// to its own projection and, as the row's part, to the attention vectors.
struct RowGradients {
  float* edge_score;  // [e, H]
  float* target;      // [rows, H, C]
  float* score;       // [rows, H, C]
};
void AttendRowBackward(const Gatv2Views& views, int64_t row,
                       const float* weights, const float* grad,
                       const RowGradients& gradients) {
  const int32_t begin = views.indptr[row], end = views.indptr[row + 1];
  for (int64_t head = 0; head < views.heads; ++head) {
    const int64_t place = (row * views.heads + head) * views.width;
    float mean = 0;
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      gradients.edge_score[cell] =
          views.factor(cell) *
          Dot(grad + place, views.of_source(e, head), views.width);
      mean += weights[cell] * gradients.edge_score[cell];
    }
    const float* target = views.of_target(row, head);
    for (int32_t e = begin; e < end; ++e) {
      const int64_t cell = e * views.heads + head;
      float& edge = gradients.edge_score[cell];
      edge = weights[cell] * (edge - mean);
      const float* source = views.of_source(e, head);
      AddScoreGradient(edge, views.score + head * views.width, source, target,
                       views.width, gradients.target + place);
      AddVectorGradient(edge, source, target, views.width,
                        gradients.score + place);
    }
  }
}

// Adds edge e's part of the gradient of its source.
void AddSourceGradient(const Gatv2Views& views, int32_t e, int64_t row,
                       const float* weights, const float* edge_score,
                       const float* grad, float* sources) {
  for (int64_t head = 0; head < views.heads; ++head) {
    const int64_t cell = e * views.heads + head;
    const float* source = views.of_source(e, head);
    float* out = sources + (source - views.source);
    AddScaled(weights[cell] * views.factor(cell),
              grad + (row * views.heads + head) * views.width, views.width,
              out);
    AddScoreGradient(edge_score[cell], views.score + head * views.width, source,
                     views.of_target(row, head), views.width, out);
  }
}

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
    const Gatv2Views views(source, target, score, indptr, index, mask);
    const at::Tensor weights =
        at::empty({index.size(0), views.heads}, at::kFloat);
    const at::Tensor out =
        at::zeros({views.rows, views.heads, views.width}, at::kFloat);
    float* weight = weights.mutable_data_ptr<float>();
    float* sums = out.mutable_data_ptr<float>();
    at::parallel_for(0, views.rows, kAttentionGrainRows,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         AttendRow(views, i, weight, sums);
                       }
                     });
    context->save_for_backward(
        {source, target, score, indptr, index, mask, weights});
    return out;
  }

  static Tensors backward(Context* context, Tensors grads) {
    const Tensors saved = context->get_saved_variables();
    const Gatv2Views views(saved[0], saved[1], saved[2], saved[3], saved[4],
                           saved[5]);
    const at::Tensor grad_out = grads[0].contiguous();
    const float* grad = grad_out.const_data_ptr<float>();
    const float* weight = saved[6].const_data_ptr<float>();
    const at::Tensor edge_score = at::empty(saved[6].sizes(), at::kFloat);
    const at::Tensor source = at::zeros(saved[0].sizes(), at::kFloat);
    const at::Tensor target = at::zeros(saved[1].sizes(), at::kFloat);
    const at::Tensor row_score = at::zeros(grad_out.sizes(), at::kFloat);
    const RowGradients gradients{edge_score.mutable_data_ptr<float>(),
                                 target.mutable_data_ptr<float>(),
                                 row_score.mutable_data_ptr<float>()};
    at::parallel_for(0, views.rows, kAttentionGrainRows,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         AttendRowBackward(views, i, weight, grad, gradients);
                       }
                     });
    float* sources = source.mutable_data_ptr<float>();
    const EdgesBySource lists(views.indptr, views.index, views.rows,
                              views.sources);
    at::parallel_for(
        0, views.sources, kAttentionGrainRows, [&](int64_t begin, int64_t end) {
          for (int64_t k = lists.begin[begin]; k < lists.begin[end]; ++k) {
            const int32_t e = lists.edge[k];
            AddSourceGradient(views, e, lists.row[e], weight,
                              gradients.edge_score, grad, sources);
          }
        });
    return {source, target, SumOfRows(views, gradients.score), {}, {}, {}};
  }

 private:
  // [1, H, C]: the sum over rows, which LibTorch may split among its threads.
  static at::Tensor SumOfRows(const Gatv2Views& views, const float* rows) {
    at::Tensor sum = at::zeros({1, views.heads, views.width}, at::kFloat);
    const int64_t size = views.heads * views.width;
    for (int64_t i = 0; i < views.rows; ++i) {
      AddScaled(1.0f, rows + i * size, size, sum.mutable_data_ptr<float>());
    }
    return sum;
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
  // A custom Function accepts no undefined tensors.
  at::Tensor mask = at::empty({0}, at::kFloat);
  if (pass.training && dropout_ > 0) {
    mask = Dropout(at::ones({neighbors.index.size(0), heads_}, at::kFloat),
                   dropout_, pass.dropout, dropout_place_);
  }
  const at::Tensor sum = Gatv2Attention::apply(
      at::linear(source, source_weight_, source_bias_).contiguous(),
      at::linear(target, target_weight_, target_bias_).contiguous(), score_,
      neighbors.indptr.contiguous(), neighbors.index.contiguous(), mask);
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
