// SPDX-License-Identifier: Apache-2.0
// The events of a trainer's log that say how it was started, what it trains and
// how that ended.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/open_source.h"
#include "client/train/run/train_options.h"
#include "client/train/trainer.h"
#include "common/graph/manifest.h"

namespace millrace {

// A trainer's place in its group.
struct TrainPlace {
  std::optional<int> rank;  // absent if its launcher adds it
  int world = 1;
};

// How a user started a trainer.
struct TrainSetup {
  TrainPlace place;
  std::string source;            // "store PATH" or "servers LIST"
  const SourceOptions& options;  // must outlive this
  std::string device;            // "cpu", "cuda" or "auto"
  int threads = 1;               // of this rank
  std::string metrics;           // HOST:PORT; empty for none
  const TrainOptions& training;  // must outlive this
};

// Comes first, before the source is opened.
void LogTrainSetup(const TrainSetup& setup);

// What is known about a run once its source is open.
struct TrainStart {
  TrainPlace place;
  std::string device;        // "cpu", "cuda:0"
  const Manifest& manifest;  // of the source
  const TrainOptions& options;
};

void LogTrainStart(const TrainStart& start);

// `status`: why the run ended. `state`: how far it got in `time`.
void LogTrainEnd(const absl::Status& status, const RunState& state,
                 absl::Duration time);

}  // namespace millrace
