// SPDX-License-Identifier: Apache-2.0
// The events of a trainer's log that say what it trains and how that ended.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/train/run/train_options.h"
#include "client/train/trainer.h"

namespace millrace {

// What a trainer starts with.
struct TrainStart {
  std::string source;  // --store or --servers
  int rank = 0;
  int world = 1;
  std::string device;  // "cpu", "cuda:0"
  const TrainOptions& options;
};

void LogTrainStart(const TrainStart& start);

// `status`: why Run() ended. `time`: since the start.
void LogTrainEnd(const absl::Status& status, const RunState& state,
                 absl::Duration time);

}  // namespace millrace
