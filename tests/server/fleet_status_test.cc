// SPDX-License-Identifier: Apache-2.0
#include "server/fleet_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

using Json = nlohmann::json;
using State = FleetMemberInfo::State;

FleetMemberInfo Member(std::string address, State state,
                       std::vector<int> partitions) {
  FleetMemberInfo info;
  info.address = std::move(address);
  info.state = state;
  info.partitions = std::move(partitions);
  info.version = "0.1.0";
  return info;
}

// A server of partition 0 of 3, without peers.
FleetStatus OwnStatus() {
  FleetStatus status;
  status.state = "ready";
  status.address = "10.0.0.1:7000";
  status.version = "0.1.0";
  status.store = "cora-3";
  status.parts = 3;
  status.self = Member("", State::kReady, {0});
  status.self.instance = "one";
  return status;
}

Json Printed(const FleetStatus& status) {
  return Json::parse(PrintFleetStatus(status));
}

TEST(PrintFleetStatusTest, ServerWithoutPeersShowsItself) {
  const Json json = Printed(OwnStatus());
  EXPECT_EQ(json["kind"], "server");
  EXPECT_EQ(json["has_peers"], false);
  ASSERT_EQ(json["servers"].size(), 1u);
  EXPECT_EQ(json["servers"][0]["address"], "10.0.0.1:7000");
  EXPECT_EQ(json["servers"][0]["self"], true);
  EXPECT_EQ(json["missing_partitions"], Json({1, 2}));
}

TEST(PrintFleetStatusTest, ServerRecognisesItselfInTheList) {
  FleetStatus status = OwnStatus();
  status.has_peers = true;
  status.self.inflight_bytes = 77;
  FleetMemberInfo as_peer = Member("host:7000", State::kReady, {0});
  as_peer.instance = "one";
  FleetMemberInfo other = Member("other:7000", State::kReady, {1});
  other.instance = "two";
  status.peers = {other, as_peer};
  const Json json = Printed(status);
  ASSERT_EQ(json["servers"].size(), 2u);
  EXPECT_EQ(json["servers"][0]["self"], false);
  EXPECT_EQ(json["servers"][1]["self"], true);
  EXPECT_EQ(json["servers"][1]["address"], "host:7000");
  // Its own figures are of now.
  EXPECT_EQ(json["servers"][1]["inflight_bytes"], 77);
  EXPECT_EQ(json["missing_partitions"], Json({2}));
}

TEST(PrintFleetStatusTest, OldServersAreNotTakenForThisOne) {
  FleetStatus status = OwnStatus();
  status.self.instance = "";
  status.peers = {Member("other:7000", State::kReady, {0})};
  const Json json = Printed(status);
  ASSERT_EQ(json["servers"].size(), 2u);
  EXPECT_EQ(json["servers"][1]["self"], false);
}

TEST(PrintFleetStatusTest, OnlyReadyServersServeAPartition) {
  FleetStatus status = OwnStatus();
  status.self.state = State::kDraining;
  status.peers = {Member("a:1", State::kUnreachable, {1}),
                  Member("b:1", State::kRefused, {1, 2}),
                  Member("c:1", State::kReady, {2, 99, -1})};
  EXPECT_EQ(Printed(status)["missing_partitions"], Json({0, 1}));
}

TEST(PrintFleetStatusTest, ServersWithFailedGpusServeNoPartition) {
  FleetStatus status = OwnStatus();
  status.self.failure = "a GPU has failed";
  status.peers = {Member("a:1", State::kReady, {1, 2})};
  EXPECT_EQ(Printed(status)["missing_partitions"], Json::array({0}));
}

TEST(PrintFleetStatusTest, ReplicasAreNumberedInTheOrderOfTheList) {
  FleetStatus status = OwnStatus();
  status.peers = {Member("a:1", State::kReady, {0, 1})};
  const Json json = Printed(status);
  EXPECT_EQ(json["servers"][0]["replica"], 0);
  EXPECT_EQ(json["servers"][1]["replica"], 1);
}

TEST(PrintFleetStatusTest, HasLoadMemoryAndDamage) {
  FleetStatus status = OwnStatus();
  status.self.damaged = {{2, "part-2/a.bin: checksum"}};
  status.self.failure = "a GPU has failed";
  status.self.uptime = absl::Seconds(90);
  status.self.load = {.sampling_busy_ratio = 0.5,
                      .batches_per_second = 12,
                      .sample_p50 = absl::Milliseconds(3),
                      .sample_p99 = absl::Milliseconds(9),
                      .sample_calls = 4,
                      .resident_bytes = 1000};
  status.memory = {{.content = "graph", .memory = "ram", .bytes = 64}};
  status.gpus = {{.device = 1, .free_bytes = 2, .total_bytes = 5}};
  const Json json = Printed(status);
  const Json& server = json["servers"][0];
  EXPECT_EQ(server["damaged_partitions"]["2"], "part-2/a.bin: checksum");
  EXPECT_EQ(server["failure"], "a GPU has failed");
  EXPECT_EQ(server["leaf_only"], false);
  EXPECT_EQ(server["uptime_seconds"], 90);
  EXPECT_EQ(server["sampling_busy_ratio"], 0.5);
  EXPECT_EQ(server["batches_per_second"], 12.0);
  EXPECT_EQ(server["sample_p50_seconds"], 0.003);
  EXPECT_EQ(server["sample_p99_seconds"], 0.009);
  EXPECT_EQ(server["sample_calls"], 4);
  EXPECT_EQ(server["resident_bytes"], 1000);
  EXPECT_EQ(json["memory"],
            Json::parse(R"([{"content":"graph","memory":"ram","bytes":64}])"));
  EXPECT_EQ(json["gpus"],
            Json::parse(R"([{"gpu":1,"free_bytes":2,"total_bytes":5}])"));
}

// Whatever another server says of itself, the JSON is valid.
TEST(PrintFleetStatusTest, PassesOnHostileTexts) {
  FleetStatus status = OwnStatus();
  FleetMemberInfo peer = Member("a:1", State::kRefused, {});
  peer.version = "</script><script>alert(1)</script>";
  peer.error = absl::UnavailableError("\xc3\x28 \"quoted\"\nadvice");
  status.peers = {peer};
  const Json json = Printed(status);
  EXPECT_EQ(json["servers"][1]["version"], peer.version);
  EXPECT_EQ(json["servers"][1]["error"], "\uFFFD( \"quoted\"");
}

TEST(PrintFleetStatusTest, StartingServerSaysSo) {
  const Json json = Json::parse(PrintStartingStatus());
  EXPECT_EQ(json["state"], "starting");
  EXPECT_THAT(json["version"].get<std::string>(),
              ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+.*"));
}

}  // namespace
}  // namespace millrace
