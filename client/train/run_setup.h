// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "client/train/device/accelerator.h"
#include "client/train/eval/evaluator.h"
#include "client/train/group/collectives.h"
#include "client/train/learner.h"
#include "client/train/objective.h"
#include "client/train/run/run_monitor.h"
#include "client/train/run/train_options.h"
#include "client/train/run_checkpoints.h"
#include "client/train/run_logs.h"
#include "client/train/run_plan.h"
#include "client/train/run_state.h"
#include "common/sample/batch_source.h"

namespace millrace {

// A run that is ready for its first step. Parts may refer to those above them.
struct RunParts {
  std::shared_ptr<BatchSource> source;  // shared with loaders
  std::shared_ptr<ArrayMemory> memory;  // of the accelerator; may be null
  std::shared_ptr<RunMonitor> monitor;  // shared with those who watch the run
  bool watched = false;                 // whether anybody does
  std::unique_ptr<const RunPlan> plan;
  std::unique_ptr<Objective> objective;
  RunInputs inputs;
  std::unique_ptr<RunLogs> logs;
  std::unique_ptr<RunCheckpoints> checkpoints;
  std::unique_ptr<Learner> learner;
  std::unique_ptr<Evaluator> evaluator;
  RunState state;
};

// Makes the plan and all other parts, and resumes if asked to. All ranks call
// it. `collectives` and `accelerator` must outlive the parts; `monitor` is told
// what the run is. Fails like Trainer::Create.
absl::StatusOr<RunParts> SetUpRun(std::shared_ptr<BatchSource> source,
                                  Collectives& collectives,
                                  TrainOptions options,
                                  Accelerator& accelerator,
                                  std::shared_ptr<RunMonitor> monitor);

}  // namespace millrace
