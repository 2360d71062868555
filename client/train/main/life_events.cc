// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/life_events.h"

#include "absl/strings/str_join.h"
#include "client/nn/model_kind.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"

namespace millrace {

void LogTrainStart(const TrainStart& start) {
  const TrainOptions& options = start.options;
  LogFields fields = {{"version", MILLRACE_VERSION}, {"source", start.source}};
  if (start.rank.has_value()) fields.push_back({"rank", *start.rank});
  fields.insert(fields.end(),
                {{"world", start.world},
                 {"device", start.device},
                 {"model", InfoOf(options.model.kind).name},
                 {"epochs", options.epochs},
                 {"batch_size", options.job.batch_size},
                 {"fanouts", absl::StrJoin(options.job.fanouts, ",")},
                 {"split", options.job.split}});
  LogInfo(LogComponent::kTrain, "training", fields);
}

void LogTrainEnd(const absl::Status& status, const RunState& state,
                 absl::Duration time) {
  std::string why = status.ok() ? "done" : FirstLine(status);
  if (absl::IsCancelled(status) && Interrupted()) why = InterruptName();
  LogFields fields = {{"why", why},
                      {"epoch", state.epoch},
                      {"step", state.step},
                      {"seconds", LogSeconds(time)}};
  if (state.best_valid.has_value()) {
    fields.push_back({"best_epoch", state.best_epoch});
    fields.push_back({"best_valid", *state.best_valid});
  }
  if (status.ok() || absl::IsCancelled(status)) {
    LogInfo(LogComponent::kTrain, "ended", fields);
  } else {
    LogError(LogComponent::kTrain, "ended", fields);
  }
}

}  // namespace millrace
