// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/nn/model.h"
#include "client/train/objective.h"
#include "client/train/run/run_identity.h"
#include "client/train/run_plan.h"
#include "client/train/run_state.h"

namespace millrace {

// Returns what identifies a run in a checkpoint of `state`: its options,
// splits, seeds and model. A run that resumes from the checkpoint must have the
// same.
RunIdentity CheckpointIdentity(const RunPlan& plan, const RunInputs& inputs,
                               const Model& model, const RunState& state);

}  // namespace millrace
