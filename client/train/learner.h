// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/device/accelerator.h"
#include "client/train/group/collectives.h"
#include "client/train/objective.h"
#include "client/train/run/checkpoint.h"
#include "client/train/run/optimizer.h"
#include "client/train/train_step.h"

namespace millrace {

// A model and its optimizer, whose tensors make up a checkpoint.
// Threads: one at a time; all ranks make the same calls.
class Learner {
 public:
  // Keeps references to `objective`, `collectives` and `accelerator`, which the
  // model is on. All ranks call it. RESOURCE_EXHAUSTED: the optimizer does not
  // fit in memory. Also fails like Accelerator::MakeReducer.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(
      std::unique_ptr<Model> model, const OptimizerConfig& optimizer,
      const Objective& objective, Collectives& collectives,
      Accelerator& accelerator = CpuAccelerator());

  Model& model() { return *model_; }
  int64_t optimizer_steps() const { return optimizer_.steps(); }

  // Takes one optimizer step with learning rate `rate` and the gradients of all
  // ranks; see TrainStep::Run for the other arguments. Leaves the model
  // unchanged if nothing was labelled or the loss is not finite.
  absl::StatusOr<StepSums> Step(
      const Minibatch* minibatch, const DropoutKey& dropout, double rate,
      const std::function<void()>& meanwhile = nullptr);

  // See TrainStep::AverageBuffers.
  absl::Status AverageBuffers() { return step_.AverageBuffers(); }

  // Copies all tensors into rank 0's `checkpoint`, on the CPU; the others'
  // receive only Checkpoint::ranks. Training continues as if this had not been
  // called.
  absl::Status SaveTo(Checkpoint& checkpoint);
  // Restores the tensors. `same_world` says whether the checkpoint was written
  // by as many ranks as there are now. Fails like ParameterSet::Load,
  // Optimizer::Load and TrainStep::LoadRankBuffers.
  absl::Status Load(const Checkpoint& checkpoint, int64_t optimizer_steps,
                    bool same_world);

 private:
  Learner(std::unique_ptr<Model> model, const OptimizerConfig& optimizer,
          const Objective& objective, Collectives& collectives,
          Accelerator& accelerator, std::unique_ptr<Reducer> reducer);
  std::vector<NamedTensor> CopyOfModel(
      const std::vector<at::Tensor>& means) const;

  Collectives& collectives_;
  const std::unique_ptr<Model> model_;
  TrainStep step_;
  Optimizer optimizer_;
};

}  // namespace millrace
