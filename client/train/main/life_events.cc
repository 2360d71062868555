// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/life_events.h"

#include "absl/strings/str_join.h"
#include "client/nn/model_kind.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/status_lines.h"

namespace millrace {

namespace {

void AppendPlace(const TrainPlace& place, LogFields& fields) {
  if (place.rank.has_value()) fields.push_back({"rank", *place.rank});
  fields.push_back({"world_size", place.world});
}

// How batches are fetched from servers, or made from a store.
void AppendSource(const SourceOptions& options, LogFields& fields) {
  if (options.servers.empty()) {
    fields.insert(fields.end(),
                  {{"graph_memory", WordOf(options.memory.graph)},
                   {"feature_memory", WordOf(options.memory.features)}});
  } else {
    fields.insert(
        fields.end(),
        {{"tls", options.tls.enabled() ? "on" : "off"},
         {"partition_wait", absl::FormatDuration(options.partition_wait)}});
  }
  if (options.cache_ratio != 0) {
    fields.push_back({"cache_ratio", options.cache_ratio});
  }
  if (options.trace_slow > absl::ZeroDuration()) {
    fields.push_back({"trace_slow", absl::FormatDuration(options.trace_slow)});
  }
}

}  // namespace

void LogTrainSetup(const TrainSetup& setup) {
  LogFields fields = {{"version", MILLRACE_VERSION}, {"source", setup.source}};
  AppendPlace(setup.place, fields);
  fields.insert(fields.end(),
                {{"device", setup.device},
                 {"threads", setup.threads},
                 {"prefetch_batches", setup.training.prefetch_batches},
                 {"prefetch_bytes", setup.training.prefetch_bytes}});
  AppendSource(setup.options, fields);
  if (!setup.metrics.empty()) fields.push_back({"metrics", setup.metrics});
  LogInfo(LogComponent::kTrain, "starting", fields);
}

void LogTrainStart(const TrainStart& start) {
  const TrainOptions& options = start.options;
  LogFields fields;
  AppendPlace(start.place, fields);
  fields.push_back({"device", start.device});
  const Manifest& manifest = start.manifest;
  if (!manifest.uuid.empty()) fields.push_back({"store_uuid", manifest.uuid});
  if (!manifest.fingerprint.empty()) {
    fields.push_back({"fingerprint", manifest.fingerprint});
  }
  fields.insert(fields.end(),
                {{"model", InfoOf(options.model.kind).name},
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
