// SPDX-License-Identifier: Apache-2.0
// The events of a trainer's log that say what it trains and how that ended.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/train/run/train_options.h"
#include "client/train/trainer.h"

namespace millrace {

// What a trainer starts with.
struct TrainStart {
  std::string source;       // "store PATH" or "servers LIST"
  std::optional<int> rank;  // absent if its launcher adds it
  int world = 1;
  std::string device;  // "cpu", "cuda:0"
  const TrainOptions& options;
};

void LogTrainStart(const TrainStart& start);

// `status`: why the run ended. `state`: how far it got in `time`.
void LogTrainEnd(const absl::Status& status, const RunState& state,
                 absl::Duration time);

}  // namespace millrace
