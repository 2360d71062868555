// SPDX-License-Identifier: Apache-2.0
#include "client/train/train_step.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <xxhash.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client/tensor/torch_status.h"
#include "client/train/device/host_reducer.h"
#include "client/train/objective.h"
#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

// What follows the gradients in their buffer. Counts are exact in
// float32 up to 2^24 labels per step.
enum Tail { kLoss = 0, kLabelled, kCorrect, kTailSize };

// Returns this rank's row of `rows`, if each has the shape `row`.
absl::StatusOr<at::Tensor> OwnRow(const NamedTensor& rows, at::IntArrayRef row,
                                  const Collectives& collectives) {
  std::vector<int64_t> shape = row.vec();
  shape.insert(shape.begin(), collectives.world());
  if (rows.tensor.sizes() == at::IntArrayRef(shape)) {
    return rows.tensor.select(0, collectives.rank());
  }
  return absl::InvalidArgumentError(StrCat("the ranks' \"", rows.name, "\" is ",
                                           ShapeText(rows.tensor.sizes()),
                                           ", but must be ", ShapeText(shape)));
}

}  // namespace

TrainStep::TrainStep(Model& model, Collectives& collectives,
                     const Objective& objective, Accelerator& accelerator,
                     std::unique_ptr<Reducer> reducer)
    : model_(model),
      collectives_(collectives),
      objective_(objective),
      memory_(accelerator, Reason{"batch_too_large"}),
      reducer_(reducer == nullptr ? std::make_unique<HostReducer>(collectives)
                                  : std::move(reducer)),
      buckets_(model.parameters().parameters(), kTailSize, model.device(),
               *reducer_) {}

absl::Status TrainStep::CheckBatchMemory(const Minibatch& minibatch) {
  return memory_.Check(StrCat("training on a batch of ", minibatch.seeds,
                              " seeds and their neighbours with ",
                              model_.config().hidden, " hidden columns"),
                       model_.LayerBytes(minibatch.graph));
}

absl::Status TrainStep::ForwardBackward(const Minibatch& minibatch,
                                        const DropoutKey& dropout) {
  MILLRACE_RETURN_IF_ERROR(CheckBatchMemory(minibatch));
  const Pass pass{.training = true, .dropout = dropout};
  const Outcome outcome = objective_.Forward(model_, minibatch, pass);
  {
    const c10::NoGradGuard no_grad;
    buckets_.tail()[kLoss].copy_(outcome.loss);
    buckets_.tail()[kLabelled].copy_(outcome.counted);
    buckets_.tail()[kCorrect].copy_(outcome.correct);
  }
  // The loss may depend on no parameter, if graphs have no nodes and the model
  // has no head.
  if (outcome.loss.requires_grad()) outcome.loss.backward();
  return absl::OkStatus();
}

absl::StatusOr<StepSums> TrainStep::Run(
    const Minibatch* minibatch, const DropoutKey& dropout,
    const std::function<void()>& meanwhile) {
  const std::string what =
      minibatch == nullptr
          ? "a training step"
          : StrCat("training on a batch of ", minibatch->seeds, " seeds");
  return CatchTorch(what, [&]() -> absl::StatusOr<StepSums> {
    buckets_.Begin();
    if (minibatch != nullptr && minibatch->labelled > 0) {
      MILLRACE_RETURN_IF_ERROR(ForwardBackward(*minibatch, dropout));
      seeds_since_average_ += minibatch->labelled;
    }
    buckets_.StartRest();
    if (meanwhile != nullptr) meanwhile();
    MILLRACE_RETURN_IF_ERROR(buckets_.Finish());
    // The only place where a step waits for its device.
    const at::Tensor tail = buckets_.tail().cpu();
    StepSums sums;
    sums.loss = tail[kLoss].item().toDouble();
    sums.labelled = tail[kLabelled].item().toLong();
    sums.correct = tail[kCorrect].item().toLong();
    if (sums.labelled > 0) {
      at::Tensor(buckets_.gradient()).div_(static_cast<double>(sums.labelled));
    }
    return sums;
  });
}

absl::StatusOr<std::vector<at::Tensor>> TrainStep::MeanBuffers() {
  using Means = std::vector<at::Tensor>;
  const std::vector<NamedTensor>& buffers = model_.parameters().buffers();
  if (buffers.empty() || collectives_.world() == 1) return Means();
  return CatchTorch(
      "averaging running statistics", [&]() -> absl::StatusOr<Means> {
        int64_t size = 1;  // the weight
        for (const NamedTensor& buffer : buffers) size += buffer.tensor.numel();
        // Doubles keep batch counts exact and equal values equal.
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
        if (total == 0) return Means();
        flat.div_(total);
        Means means;
        begin = 0;
        for (const NamedTensor& buffer : buffers) {
          const int64_t count = buffer.tensor.numel();
          at::Tensor mean = flat.narrow(0, begin, count);
          if (!buffer.tensor.is_floating_point()) mean = mean.round();
          means.push_back(at::empty_like(buffer.tensor)
                              .copy_(mean.view(buffer.tensor.sizes())));
          begin += count;
        }
        return means;
      });
}

absl::Status TrainStep::AverageBuffers() {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<at::Tensor> means, MeanBuffers());
  seeds_since_average_ = 0;
  return CatchTorch("averaging running statistics", [&] {
    for (size_t i = 0; i < means.size(); ++i) {
      model_.parameters().buffers()[i].tensor.copy_(means[i]);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<NamedTensor>> TrainStep::RankBuffers() {
  using Ranks = std::vector<NamedTensor>;
  const std::vector<NamedTensor>& buffers = model_.parameters().buffers();
  if (buffers.empty() || collectives_.world() == 1) return Ranks();
  return CatchTorch(
      "gathering running statistics", [&]() -> absl::StatusOr<Ranks> {
        // Compares checksums first: buffers may be large weights that are not
        // learned and thus equal on all ranks.
        std::vector<int64_t> own = {seeds_since_average_};
        for (const NamedTensor& buffer : buffers) {
          const at::Tensor bytes = buffer.tensor.cpu().contiguous();
          own.push_back(static_cast<int64_t>(
              XXH3_64bits(bytes.const_data_ptr(), bytes.nbytes())));
        }
        MILLRACE_ASSIGN_OR_RETURN(
            const at::Tensor table,
            collectives_.GatherRows(at::tensor(own, at::kLong)));
        const at::Tensor seeds = table.select(1, 0).clone();
        if (seeds.sum().item().toLong() == 0) return Ranks();
        Ranks ranks = {{kRankSeeds, seeds}};
        for (size_t i = 0; i < buffers.size(); ++i) {
          const at::Tensor sums = table.select(1, static_cast<int64_t>(i) + 1);
          if (sums.eq(sums[0]).all().item().toBool()) continue;
          MILLRACE_ASSIGN_OR_RETURN(
              const at::Tensor rows,
              collectives_.GatherRows(buffers[i].tensor.cpu()));
          ranks.push_back({buffers[i].name, rows});
        }
        return ranks;
      });
}

absl::Status TrainStep::LoadRankBuffers(const std::vector<NamedTensor>& ranks) {
  return CatchTorch("loading running statistics", [&]() -> absl::Status {
    for (const NamedTensor& rows : ranks) {
      if (rows.name == kRankSeeds) {
        MILLRACE_ASSIGN_OR_RETURN(const at::Tensor seeds,
                                  OwnRow(rows, {}, collectives_));
        seeds_since_average_ = seeds.item().toLong();
        continue;
      }
      const auto& buffers = model_.parameters().buffers();
      const auto found = std::find_if(
          buffers.begin(), buffers.end(),
          [&](const NamedTensor& buffer) { return buffer.name == rows.name; });
      if (found == buffers.end()) {
        return absl::InvalidArgumentError(
            StrCat("the model has no tensor \"", rows.name,
                   "\", of which there is a row for each rank"));
      }
      MILLRACE_ASSIGN_OR_RETURN(
          const at::Tensor row,
          OwnRow(rows, found->tensor.sizes(), collectives_));
      found->tensor.copy_(row);
    }
    return absl::OkStatus();
  });
}

}  // namespace millrace
