// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/run_status.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/json_line.h"
#include "common/base/unix_time.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

template <typename Value>
Json OrNull(const std::optional<Value>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json TimeOrNull(const std::optional<absl::Time>& time) {
  return time.has_value() ? Json(UnixSeconds(*time)) : Json(nullptr);
}

Json RunJson(const RunView& view) {
  const RunInfo& info = view.run.info;
  return {{"rank", info.rank},
          {"world_size", info.world},
          {"device", info.device},
          {"model", info.model},
          {"task", info.task},
          {"metric", info.metric},
          {"higher_is_better", info.higher_is_better},
          {"seeds", info.seeds},
          {"epochs", info.epochs},
          {"source", view.source}};
}

Json ProgressJson(const RunSnapshot& run) {
  return {
      {"epoch", run.epoch},
      {"step", run.step},
      {"epoch_steps", run.epoch_steps},
      {"steps", run.steps},
      {"batches", run.batches},
      {"seeds", run.seeds},
      {"batches_waiting", run.batches_waiting},
      {"loss", OrNull(run.loss)},
      {"elapsed_seconds", absl::ToDoubleSeconds(run.elapsed)},
      {"last_step_timestamp_seconds", TimeOrNull(run.last_step)},
      {"last_checkpoint_timestamp_seconds", TimeOrNull(run.last_checkpoint)}};
}

Json SecondsJson(const RunSeconds& seconds) {
  return {{"wait", seconds.wait},
          {"copy", seconds.copy},
          {"compute", seconds.compute},
          {"evaluate", seconds.evaluate},
          {"checkpoint", seconds.checkpoint}};
}

Json MetricsJson(const SplitMetrics& metrics) {
  return {{"train", OrNull(metrics.train)},
          {"valid", OrNull(metrics.valid)},
          {"test", OrNull(metrics.test)}};
}

Json CurveJson(const std::vector<Curve::Point>& points) {
  Json curve = Json::array();
  for (const Curve::Point& point : points) {
    curve.push_back(Json::array({point.x, point.y}));
  }
  return curve;
}

Json FleetJson(const FleetUse& use) {
  Json fleet = {
      {"calls", use.calls},     {"hedged_calls", use.hedged_calls},
      {"retries", use.retries}, {"received_bytes", use.received_bytes},
      {"cache_hits", nullptr},  {"cache_misses", nullptr}};
  if (use.cached_rows.has_value()) {
    fleet["cache_hits"] = use.cached_rows->hits;
    fleet["cache_misses"] = use.cached_rows->misses;
  }
  Json servers = Json::array();
  for (const KnownServer& server : use.servers) {
    servers.push_back({{"address", server.address},
                       {"state", server.state},
                       {"partitions", server.partitions},
                       {"version", server.version},
                       {"error", server.error}});
  }
  fleet["servers"] = std::move(servers);
  return fleet;
}

}  // namespace

std::string PrintTrainerStatus(const RunView& view) {
  const RunSnapshot& run = view.run;
  Json status = {{"kind", "trainer"},
                 {"version", MILLRACE_VERSION},
                 {"now", UnixSeconds(absl::Now())},
                 {"state", RunPhaseName(run.phase)},
                 {"run", RunJson(view)},
                 {"progress", ProgressJson(run)},
                 {"seconds", SecondsJson(run.seconds)},
                 {"metrics", MetricsJson(run.metrics)},
                 {"best", MetricsJson(run.best)},
                 {"best_epoch", OrNull(run.best_epoch)},
                 {"loss_curve", CurveJson(run.losses)},
                 {"valid_curve", CurveJson(run.valid)},
                 {"test_curve", CurveJson(run.test)}};
  status["fleet"] = view.fleet.has_value() ? FleetJson(*view.fleet) : nullptr;
  return JsonLine(status);
}

}  // namespace millrace
