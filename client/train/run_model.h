// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/nn/model.h"
#include "client/train/device/accelerator.h"
#include "client/train/group/collectives.h"
#include "client/train/run/train_options.h"
#include "client/train/run_plan.h"

namespace millrace {

// Makes the model of a plan on the accelerator, from `config`, which has the
// number of outputs. All ranks call it. RESOURCE_EXHAUSTED: training it does
// not fit in the memory that is available. INVALID_ARGUMENT: a script whose
// outputs do not fit the labels, or whose tensors checkpoints cannot hold.
// FAILED_PRECONDITION: a script that differs from rank 0's. Fails like
// Model::Create.
absl::StatusOr<std::unique_ptr<Model>> MakeRunModel(const RunPlan& plan,
                                                    const ModelConfig& config,
                                                    Collectives& collectives,
                                                    Accelerator& accelerator);

// Gives the model of every rank the weights of rank 0's --init. All ranks call
// it. Fails like ReadWeights and ParameterSet::Load, naming the file.
absl::Status ReadInitialWeights(const TrainOptions& options,
                                Collectives& collectives, Model& model);

}  // namespace millrace
