// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/nn/model.h"
#include "client/train/objective.h"
#include "client/train/run/run_identity.h"
#include "client/train/run_plan.h"
#include "client/train/run_state.h"

namespace millrace {

// Returns what a run must have in common with the run that wrote a checkpoint
// in `state` in order to resume from it.
RunIdentity ResumeIdentity(const RunPlan& plan, const RunInputs& inputs,
                           const Model& model, const RunState& state);

}  // namespace millrace
