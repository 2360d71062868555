// SPDX-License-Identifier: Apache-2.0
#include "client/train/train_step.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <vector>

#include "client/tensor/torch_status.h"
#include "client/train/link_scores.h"
#include "common/base/status_macros.h"

namespace millrace {
namespace {

// What follows the gradients in the exchanged buffer. Counts are exact in
// float32 up to 2^24 labels a step.
enum Tail { kLoss = 0, kLabelled, kCorrect, kTailSize };

}  // namespace

TrainStep::TrainStep(Model& model, Collectives& collectives, const Task& task)
    : model_(model), collectives_(collectives), task_(task) {
  int64_t size = 0;
  for (const NamedTensor& parameter : model.parameters().parameters()) {
    size += parameter.tensor.numel();
  }
  exchange_ = at::zeros({size + kTailSize}, at::kFloat);
  gradient_ = exchange_.narrow(0, 0, size);
}

Outcome TrainStep::Forward(const Minibatch& minibatch, const Pass& pass) const {
  if (minibatch.links.has_value()) {
    const GraphShape& shape = model_.shape();
    const std::vector<at::Tensor> rows =
        model_.ForwardTypes(minibatch.graph, pass);
    return LinkOutcome(task_.loss, *model_.decoder(), *minibatch.links,
                       TakeEnds(minibatch.links->row, rows[*shape.source_type],
                                rows[shape.seed_type]),
                       /*one_type=*/shape.source_type == shape.seed_type);
  }
  const at::Tensor logits =
      minibatch.OfSeeds(model_.Forward(minibatch.graph, pass));
  return {LossSum(task_.kind, logits, minibatch.labels), minibatch.labelled,
          CountCorrect(task_.kind, logits, minibatch.labels)};
}

absl::Status TrainStep::ForwardBackward(const Minibatch& minibatch,
                                        const DropoutKey& dropout) {
  const Pass pass{.training = true, .dropout = dropout};
  const Outcome outcome = Forward(minibatch, pass);
  for (const NamedTensor& named : model_.parameters().parameters()) {
    at::Tensor parameter = named.tensor;
    parameter.mutable_grad().reset();
  }
  outcome.loss.backward();
  c10::NoGradGuard no_grad;
  int64_t begin = 0;
  for (const NamedTensor& named : model_.parameters().parameters()) {
    const int64_t size = named.tensor.numel();
    if (named.tensor.grad().defined()) {
      gradient_.narrow(0, begin, size)
          .copy_(named.tensor.grad().reshape({size}));
    }
    begin += size;
  }
  const at::Tensor tail = exchange_.narrow(0, begin, kTailSize);
  tail[kLoss].copy_(outcome.loss);
  tail[kLabelled].fill_(static_cast<double>(outcome.counted));
  tail[kCorrect].fill_(static_cast<double>(outcome.correct));
  return absl::OkStatus();
}

absl::StatusOr<StepSums> TrainStep::Run(const Minibatch* minibatch,
                                        const DropoutKey& dropout) {
  return CatchTorch("a training step", [&]() -> absl::StatusOr<StepSums> {
    exchange_.zero_();
    if (minibatch != nullptr && minibatch->labelled > 0) {
      MILLRACE_RETURN_IF_ERROR(ForwardBackward(*minibatch, dropout));
      seeds_since_average_ += minibatch->labelled;
    }
    MILLRACE_RETURN_IF_ERROR(collectives_.AllReduceSum(exchange_));
    const at::Tensor tail = exchange_.narrow(0, gradient_.numel(), kTailSize);
    StepSums sums;
    sums.loss = tail[kLoss].item().toDouble();
    sums.labelled = tail[kLabelled].item().toLong();
    sums.correct = tail[kCorrect].item().toLong();
    if (sums.labelled > 0) gradient_.div_(static_cast<double>(sums.labelled));
    return sums;
  });
}

absl::Status TrainStep::AverageBuffers() {
  const std::vector<NamedTensor>& buffers = model_.parameters().buffers();
  if (buffers.empty() || collectives_.world() == 1) return absl::OkStatus();
  return CatchTorch("averaging running statistics", [&]() -> absl::Status {
    int64_t size = 1;  // the weight
    for (const NamedTensor& buffer : buffers) size += buffer.tensor.numel();
    // Doubles, so that batch counts survive and equal values stay equal.
    at::Tensor flat = at::zeros({size}, at::kDouble);
    const auto weight = static_cast<double>(seeds_since_average_);
    int64_t begin = 0;
    for (const NamedTensor& buffer : buffers) {
      const int64_t count = buffer.tensor.numel();
      if (weight > 0) {  // 0 times NaN would be NaN
        flat.narrow(0, begin, count)
            .copy_(buffer.tensor.reshape({count}))
            .mul_(weight);
      }
      begin += count;
    }
    flat[begin].fill_(weight);
    MILLRACE_RETURN_IF_ERROR(collectives_.AllReduceSum(flat));
    const double total = flat[begin].item().toDouble();
    seeds_since_average_ = 0;
    if (total == 0) return absl::OkStatus();
    flat.div_(total);
    begin = 0;
    for (const NamedTensor& buffer : buffers) {
      const int64_t count = buffer.tensor.numel();
      at::Tensor mean = flat.narrow(0, begin, count);
      if (!buffer.tensor.is_floating_point()) mean = mean.round();
      buffer.tensor.copy_(mean.view(buffer.tensor.sizes()));
      begin += count;
    }
    return absl::OkStatus();
  });
}

}  // namespace millrace
