// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "client/nn/model.h"
#include "client/train/objective.h"
#include "client/train/run/option_texts.h"
#include "client/train/run_plan.h"
#include "client/train/run_state.h"

namespace millrace {

// What a run that goes on from a checkpoint must share with the one that wrote
// it, when that one was in `state`.
OptionTexts RunIdentity(const RunPlan& plan, const RunInputs& inputs,
                        const Model& model, const RunState& state);

}  // namespace millrace
