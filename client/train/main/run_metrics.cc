// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/run_metrics.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/base/unix_time.h"
#include "common/grpc/fleet/member_state.h"
#include "common/metrics/families.h"
#include "common/metrics/process_metrics.h"

namespace millrace {
namespace {

prometheus::MetricFamily InfoFamily(const RunView& view) {
  const RunInfo& info = view.run.info;
  return GaugeFamily(
      "millrace_trainer_info", "What this trainer does.",
      {{.labels = {{"rank", StrCat(info.rank)},
                   {"world_size", StrCat(info.world)},
                   {"device", info.device},
                   {"model", info.model},
                   {"task", info.task},
                   {"source", view.fleet.has_value() ? "servers" : "store"},
                   {"checkpoints", info.checkpoints ? "yes" : "no"}},
        .value = 1}});
}

// The splits' values of a metric.
std::vector<MetricValue> ValuesOf(const std::string& metric,
                                  const SplitMetrics& metrics) {
  std::vector<MetricValue> values;
  const auto add = [&](const char* split, std::optional<double> value) {
    if (!value.has_value()) return;
    values.push_back(
        {.labels = {{"metric", metric}, {"split", split}}, .value = *value});
  };
  add("valid", metrics.valid);
  add("test", metrics.test);
  return values;
}

prometheus::MetricFamily SecondsFamily(const RunSeconds& seconds) {
  return CounterFamily(
      "millrace_trainer_seconds_total",
      "Where the time of this trainer goes; on a GPU, copying runs beside "
      "computing.",
      {{.labels = {{"phase", "wait"}}, .value = seconds.wait},
       {.labels = {{"phase", "copy"}}, .value = seconds.copy},
       {.labels = {{"phase", "compute"}}, .value = seconds.compute},
       {.labels = {{"phase", "evaluate"}}, .value = seconds.evaluate},
       {.labels = {{"phase", "checkpoint"}}, .value = seconds.checkpoint}});
}

MetricFamilies ProgressFamilies(const RunSnapshot& run) {
  return {
      CounterFamily("millrace_trainer_steps_total",
                    "Training steps of this process.", run.steps),
      CounterFamily("millrace_trainer_batches_total",
                    "Batches that this rank has trained on.", run.batches),
      CounterFamily("millrace_trainer_seeds_total",
                    "Seeds that this rank has trained on.", run.seeds),
      GaugeFamily("millrace_trainer_epoch", "The epoch, from 0.", run.epoch),
      GaugeFamily("millrace_trainer_step", "Steps of the epoch that are done.",
                  run.step),
      GaugeFamily("millrace_trainer_ranks", "Trainers of the run.",
                  run.info.world),
      GaugeFamily("millrace_trainer_batches_waiting",
                  "Batches that had arrived but were not used yet when the "
                  "last step ended.",
                  run.batches_waiting)};
}

// Metrics that are absent until there is a value.
MetricFamilies ResultFamilies(const RunSnapshot& run) {
  MetricFamilies all;
  if (run.loss.has_value()) {
    all.push_back(GaugeFamily(
        "millrace_trainer_loss",
        "Mean loss over the labelled values of the last step.", *run.loss));
  }
  const auto add_time = [&](const char* name, const char* help,
                            std::optional<absl::Time> time) {
    if (!time.has_value()) return;
    all.push_back(GaugeFamily(name, help, UnixSeconds(*time)));
  };
  add_time("millrace_trainer_last_step_timestamp_seconds",
           "When the last step ended (Unix time).", run.last_step);
  add_time("millrace_trainer_last_checkpoint_timestamp_seconds",
           "When this rank last wrote a checkpoint (Unix time).",
           run.last_checkpoint);
  const std::string& metric = run.info.metric;
  std::vector<MetricValue> last = ValuesOf(metric, run.metrics);
  if (!last.empty()) {
    all.push_back(GaugeFamily("millrace_trainer_metric",
                              "The metric of the last evaluation.", last));
  }
  std::vector<MetricValue> best = ValuesOf(metric, run.best);
  if (!best.empty()) {
    all.push_back(GaugeFamily("millrace_trainer_best_metric",
                              "The metric of the best evaluation.", best));
  }
  return all;
}

MetricFamilies FleetFamilies(const FleetUse& use) {
  std::vector<std::string_view> names;
  for (const KnownServer& server : use.servers) names.push_back(server.state);
  std::vector<MetricValue> states;
  for (const auto& [name, count] : CountStates(names)) {
    states.push_back(
        {.labels = {{"state", std::string(name)}}, .value = count});
  }
  MetricFamilies all = {
      CounterFamily("millrace_client_calls_total",
                    "Streams of batches and rows requested from servers.",
                    use.calls),
      CounterFamily("millrace_client_hedged_calls_total",
                    "Streams also requested from a second replica.",
                    use.hedged_calls),
      CounterFamily("millrace_client_retries_total",
                    "Attempts at a batch that were made again after a failure.",
                    use.retries),
      CounterFamily("millrace_client_received_bytes_total",
                    "Bytes of batches and rows from servers.",
                    use.received_bytes),
      GaugeFamily("millrace_client_servers", "Servers of the fleet, by state.",
                  states)};
  if (use.cached_rows.has_value()) {
    all.push_back(CounterFamily(
        "millrace_client_cache_rows_total",
        "Feature rows of batches by whether this process had them.",
        {{.labels = {{"result", "hit"}}, .value = use.cached_rows->hits},
         {.labels = {{"result", "miss"}}, .value = use.cached_rows->misses}}));
  }
  return all;
}

}  // namespace

std::string PrintTrainerMetrics(const RunView& view) {
  MetricFamilies all = ProcessMetrics();
  // It is not known before the source is open.
  if (!view.run.info.model.empty()) all.push_back(InfoFamily(view));
  AddFamilies(ProgressFamilies(view.run), all);
  all.push_back(SecondsFamily(view.run.seconds));
  AddFamilies(ResultFamilies(view.run), all);
  if (view.fleet.has_value()) AddFamilies(FleetFamilies(*view.fleet), all);
  return PrintMetrics(all);
}

}  // namespace millrace
