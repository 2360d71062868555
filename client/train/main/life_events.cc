// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/life_events.h"

#include "absl/strings/str_join.h"
#include "client/nn/model_kind.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"

namespace millrace {

namespace {

void AppendProgress(const TrainProgress& progress, LogFields& fields) {
  const RunState& state = progress.state;
  fields.insert(fields.end(), {{"epoch", state.epoch},
                               {"step", state.step},
                               {"seconds", LogSeconds(progress.time)}});
  if (!state.best_valid.has_value()) return;
  fields.push_back({"best_epoch", state.best_epoch});
  fields.push_back({"best_valid", *state.best_valid});
}

}  // namespace

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

void LogTrainEnd(const absl::Status& status,
                 const std::optional<TrainProgress>& progress) {
  std::string why = status.ok() ? "done" : FirstLine(status);
  if (absl::IsCancelled(status) && Interrupted()) why = InterruptName();
  LogFields fields = {{"why", why}};
  if (progress.has_value()) AppendProgress(*progress, fields);
  if (status.ok() || absl::IsCancelled(status)) {
    LogInfo(LogComponent::kTrain, "ended", fields);
  } else {
    LogError(LogComponent::kTrain, "ended", fields);
  }
}

}  // namespace millrace
