// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/run_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "client/train/main/run_metrics.h"
#include "client/train/main/run_status.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RunView TypicalView() {
  RunView view;
  view.source = "servers a:1,b:1";
  RunSnapshot& run = view.run;
  run.info = {.rank = 1,
              .world = 2,
              .device = "cpu",
              .model = "sage",
              .task = "single",
              .metric = "accuracy",
              .seeds = "paper",
              .epochs = 10};
  run.phase = RunPhase::kTraining;
  run.epoch = 3;
  run.step = 7;
  run.epoch_steps = 20;
  run.steps = 67;
  run.batches = 66;
  run.seeds = 2112;
  run.batches_waiting = 4;
  run.loss = 0.5;
  run.seconds = {
      .wait = 1, .copy = 2, .compute = 3, .evaluate = 4, .checkpoint = 0.5};
  run.metrics = {.train = 0.9, .valid = 0.75, .test = 0.5};
  run.best = {.train = 0.9, .valid = 0.8125, .test = 0.625};
  run.best_epoch = 2;
  run.last_step = absl::FromUnixSeconds(1700000000);
  run.losses = {{1, 2}, {2, 1.5}};
  return view;
}

KnownServer Server(const char* address, const char* state) {
  KnownServer server;
  server.address = address;
  server.state = state;
  server.partitions = {0};
  return server;
}

TEST(PrintTrainerMetricsTest, HaveTheRunAndItsProgress) {
  const std::string text = PrintTrainerMetrics(TypicalView());
  for (const char* line :
       {"\nmillrace_trainer_info{rank=\"1\",world_size=\"2\",device=\"cpu\","
        "model=\"sage\",task=\"single\",source=\"store\",checkpoints=\"no\"} "
        "1\n",
        "# TYPE millrace_trainer_steps_total counter\n"
        "millrace_trainer_steps_total 67\n",
        "\nmillrace_trainer_batches_total 66\n",
        "\nmillrace_trainer_seeds_total 2112\n", "\nmillrace_trainer_epoch 3\n",
        "\nmillrace_trainer_step 7\n", "\nmillrace_trainer_ranks 2\n",
        "\nmillrace_trainer_loss 0.5\n",
        "\nmillrace_trainer_batches_waiting 4\n",
        "\nmillrace_trainer_seconds_total{phase=\"wait\"} 1\n",
        "\nmillrace_trainer_seconds_total{phase=\"copy\"} 2\n",
        "\nmillrace_trainer_seconds_total{phase=\"compute\"} 3\n",
        "\nmillrace_trainer_seconds_total{phase=\"evaluate\"} 4\n",
        "\nmillrace_trainer_seconds_total{phase=\"checkpoint\"} 0.5\n",
        "\nmillrace_trainer_metric{metric=\"accuracy\",split=\"valid\"} 0.75\n",
        "\nmillrace_trainer_metric{metric=\"accuracy\",split=\"test\"} 0.5\n",
        "\nmillrace_trainer_best_metric{metric=\"accuracy\",split=\"valid\"} "
        "0.8125\n",
        "\nmillrace_trainer_last_step_timestamp_seconds 1700000000\n",
        "\nprocess_resident_memory_bytes "}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(PrintTrainerMetricsTest, LeaveOutWhatIsNotKnownYet) {
  const std::string text = PrintTrainerMetrics({});
  for (const char* name :
       {"millrace_trainer_info", "millrace_trainer_loss",
        "millrace_trainer_metric", "millrace_trainer_best_metric",
        "millrace_trainer_last_checkpoint", "millrace_trainer_last_step",
        "millrace_client_"}) {
    EXPECT_THAT(text, Not(HasSubstr(name)));
  }
  EXPECT_THAT(text, HasSubstr("\nmillrace_trainer_steps_total 0\n"));
}

TEST(PrintTrainerMetricsTest, HaveWhatTheFleetDoes) {
  RunView view = TypicalView();
  view.run.info.checkpoints = true;
  view.run.last_checkpoint = absl::FromUnixSeconds(1600000000);
  view.fleet =
      FleetUse{.calls = 100,
               .hedged_calls = 3,
               .retries = 2,
               .received_bytes = 4096,
               .cached_rows = CachedRowCounts{.hits = 8, .misses = 2},
               .servers = {Server("a:1", "ready"), Server("b:1", "ready"),
                           Server("c:1", "unreachable")}};
  const std::string text = PrintTrainerMetrics(view);
  for (const char* line :
       {",source=\"servers\",checkpoints=\"yes\"} 1\n",
        "\nmillrace_client_calls_total 100\n",
        "\nmillrace_client_hedged_calls_total 3\n",
        "\nmillrace_client_retries_total 2\n",
        "\nmillrace_client_received_bytes_total 4096\n",
        "\nmillrace_client_cache_rows_total{result=\"hit\"} 8\n",
        "\nmillrace_client_cache_rows_total{result=\"miss\"} 2\n",
        "\nmillrace_client_servers{state=\"ready\"} 2\n",
        "\nmillrace_client_servers{state=\"draining\"} 0\n",
        "\nmillrace_client_servers{state=\"unreachable\"} 1\n",
        "\nmillrace_client_servers{state=\"refused\"} 0\n",
        "\nmillrace_client_servers{state=\"unknown\"} 0\n",
        "\nmillrace_trainer_last_checkpoint_timestamp_seconds 1600000000\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(PrintTrainerStatusTest, IsJsonWithNullsForWhatIsNotKnown) {
  const auto empty = nlohmann::json::parse(PrintTrainerStatus({}));
  EXPECT_EQ(empty["kind"], "trainer");
  EXPECT_EQ(empty["state"], "starting");
  EXPECT_TRUE(empty["fleet"].is_null());
  EXPECT_TRUE(empty["progress"]["loss"].is_null());
  EXPECT_TRUE(empty["progress"]["last_checkpoint_timestamp_seconds"].is_null());
  EXPECT_TRUE(empty["best_epoch"].is_null());
  EXPECT_EQ(empty["loss_curve"], nlohmann::json::array());
}

TEST(PrintTrainerStatusTest, HasTheRunAndItsCurves) {
  const auto json = nlohmann::json::parse(PrintTrainerStatus(TypicalView()));
  EXPECT_EQ(json["state"], "training");
  EXPECT_EQ(json["run"]["source"], "servers a:1,b:1");
  EXPECT_EQ(json["run"]["world_size"], 2);
  EXPECT_EQ(json["run"]["epochs"], 10);
  EXPECT_EQ(json["progress"]["steps"], 67);
  EXPECT_EQ(json["progress"]["last_step_timestamp_seconds"], 1700000000);
  EXPECT_EQ(json["seconds"]["evaluate"], 4);
  EXPECT_EQ(json["best"]["valid"], 0.8125);
  EXPECT_EQ(json["best_epoch"], 2);
  EXPECT_EQ(json["loss_curve"], nlohmann::json::parse("[[1.0,2.0],[2.0,1.5]]"));
}

// Whatever a server says of itself, the JSON is valid.
TEST(PrintTrainerStatusTest, PassesOnHostileTexts) {
  RunView view = TypicalView();
  KnownServer server = Server("a:1", "refused");
  server.version = "</script><script>alert(1)</script>";
  server.error = "\xff\"\\\n";
  view.fleet = FleetUse();
  view.fleet->servers = {server};
  const auto json = nlohmann::json::parse(PrintTrainerStatus(view));
  const auto& shown = json["fleet"]["servers"][0];
  EXPECT_EQ(shown["version"], server.version);
  EXPECT_EQ(shown["error"], "\uFFFD\"\\\n");
}

}  // namespace
}  // namespace millrace
