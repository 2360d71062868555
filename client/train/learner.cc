// SPDX-License-Identifier: Apache-2.0
#include "client/train/learner.h"

#include <cmath>
#include <utility>

#include "client/tensor/batch_tensors.h"
#include "client/tensor/torch_status.h"
#include "common/base/status_macros.h"

namespace millrace {

absl::StatusOr<std::unique_ptr<Learner>> Learner::Create(
    std::unique_ptr<Model> model, const OptimizerConfig& optimizer,
    const Objective& objective, Collectives& collectives,
    Accelerator& accelerator) {
  MILLRACE_ASSIGN_OR_RETURN(std::unique_ptr<Reducer> reducer,
                            accelerator.MakeReducer(collectives));
  return CatchTorch("making the optimizer",
                    [&]() -> absl::StatusOr<std::unique_ptr<Learner>> {
                      return std::unique_ptr<Learner>(new Learner(
                          std::move(model), optimizer, objective, collectives,
                          accelerator, std::move(reducer)));
                    });
}

Learner::Learner(std::unique_ptr<Model> model, const OptimizerConfig& optimizer,
                 const Objective& objective, Collectives& collectives,
                 Accelerator& accelerator, std::unique_ptr<Reducer> reducer)
    : collectives_(collectives),
      model_(std::move(model)),
      step_(*model_, collectives, objective, accelerator, std::move(reducer)),
      optimizer_(optimizer, model_->parameters().parameters()) {}

absl::StatusOr<StepSums> Learner::Step(const Minibatch* minibatch,
                                       const DropoutKey& dropout, double rate,
                                       const std::function<void()>& meanwhile) {
  MILLRACE_ASSIGN_OR_RETURN(const StepSums sums,
                            step_.Run(minibatch, dropout, meanwhile));
  if (sums.labelled == 0 || !std::isfinite(sums.loss)) return sums;
  MILLRACE_RETURN_IF_ERROR(CatchTorch("an optimizer step", [&] {
    optimizer_.Step(step_.gradient(), rate);
    return absl::OkStatus();
  }));
  return sums;
}

// Takes `means` as the values of the buffers unless it is empty.
std::vector<NamedTensor> Learner::CopyOfModel(
    const std::vector<at::Tensor>& means) const {
  const std::vector<NamedTensor>& buffers = model_->parameters().buffers();
  std::vector<NamedTensor> copy = model_->parameters().State();
  for (NamedTensor& named : copy) {
    const at::Tensor* value = &named.tensor;
    for (size_t i = 0; i < means.size(); ++i) {
      if (named.tensor.is_same(buffers[i].tensor)) value = &means[i];
    }
    named.tensor = HostCopy(*value);
  }
  return copy;
}

absl::Status Learner::SaveTo(Checkpoint& checkpoint) {
  return CatchTorch("copying a checkpoint", [&]() -> absl::Status {
    MILLRACE_ASSIGN_OR_RETURN(checkpoint.ranks, step_.RankBuffers());
    // The checkpoint must not depend on which rank writes it.
    MILLRACE_ASSIGN_OR_RETURN(const std::vector<at::Tensor> means,
                              step_.MeanBuffers());
    if (collectives_.rank() == 0) {
      checkpoint.model = CopyOfModel(means);
      checkpoint.optimizer = optimizer_.State();
    }
    return absl::OkStatus();
  });
}

absl::Status Learner::Load(const Checkpoint& checkpoint,
                           int64_t optimizer_steps, bool same_world) {
  MILLRACE_RETURN_IF_ERROR(model_->parameters().Load(checkpoint.model));
  MILLRACE_RETURN_IF_ERROR(
      optimizer_.Load(checkpoint.optimizer, optimizer_steps));
  return same_world ? step_.LoadRankBuffers(checkpoint.ranks)
                    : absl::OkStatus();
}

}  // namespace millrace
