// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/member_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/json_line.h"

namespace millrace {
namespace {

using State = FleetMemberInfo::State;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

FleetMemberInfo ReportedMember(State state, std::vector<int> partitions) {
  FleetMemberInfo member;
  member.state = state;
  member.partitions = std::move(partitions);
  return member;
}

TEST(MemberStateTest, EachHasAName) {
  std::set<std::string_view> names;
  for (const MemberState state : kMemberStates) names.insert(StateName(state));
  EXPECT_THAT(names, ElementsAre("draining", "ready", "refused", "unknown",
                                 "unreachable"));
}

TEST(TakesWorkTest, OnlyReadyServersWithIntactPartitionsAndGpusDo) {
  EXPECT_TRUE(TakesWork(ReportedMember(State::kReady, {0})));
  for (const State state : {State::kUnknown, State::kDraining,
                            State::kUnreachable, State::kRefused}) {
    EXPECT_FALSE(TakesWork(ReportedMember(state, {0}))) << StateName(state);
  }
  EXPECT_FALSE(TakesWork(ReportedMember(State::kReady, {})));
  FleetMemberInfo failed = ReportedMember(State::kReady, {0});
  failed.failure = "a GPU has failed";
  EXPECT_FALSE(TakesWork(failed));
}

TEST(MissingPartitionsTest, AreThoseOfNoServerThatTakesWork) {
  FleetMemberInfo failed = ReportedMember(State::kReady, {0, 1});
  failed.failure = "a GPU has failed";
  const std::vector<FleetMemberInfo> members = {
      failed, ReportedMember(State::kReady, {1, 99, -1}),
      ReportedMember(State::kDraining, {2}),
      ReportedMember(State::kReady, {3})};
  EXPECT_THAT(MissingPartitions(members, 4), ElementsAre(0, 2));
  EXPECT_THAT(MissingPartitions(members, 0), IsEmpty());
  EXPECT_THAT(MissingPartitions({}, 2), ElementsAre(0, 1));
}

TEST(ReplicaNumberTest, CountsEarlierMembersWithThePartition) {
  const std::vector<FleetMemberInfo> members = {
      ReportedMember(State::kReady, {0}), ReportedMember(State::kReady, {1}),
      ReportedMember(State::kReady, {1}), ReportedMember(State::kReady, {0, 1}),
      ReportedMember(State::kUnknown, {})};
  std::vector<int> numbers;
  for (size_t i = 0; i < members.size(); ++i) {
    numbers.push_back(ReplicaNumber(members, i));
  }
  EXPECT_THAT(numbers, ElementsAre(0, 0, 1, 2, 0));
}

TEST(MembersJsonTest, HasEverything) {
  FleetMemberInfo member = ReportedMember(State::kDraining, {0, 2});
  member.address = "a:1";
  member.damaged = {{1, "part-00001/x"}};
  member.version = "0.2.0";
  member.inflight_bytes = 7;
  member.max_inflight_bytes = 9;
  member.uptime = absl::Milliseconds(1500);
  member.load = {.sampling_busy_ratio = 0.5,
                 .batches_per_second = 12,
                 .sample_p50 = absl::Milliseconds(3),
                 .sample_p99 = absl::Milliseconds(9),
                 .sample_calls = 4,
                 .resident_bytes = 1000};
  member.leaf_only = true;
  member.failure = "a GPU has failed";
  member.error = absl::UnavailableError("away\nwait");
  EXPECT_EQ(MembersJson({member}), nlohmann::ordered_json::parse(R"([{
      "address": "a:1", "state": "draining", "partitions": [0, 2],
      "replica": 0, "inflight_bytes": 7, "max_inflight_bytes": 9,
      "uptime_seconds": 1.5, "version": "0.2.0", "error": "away",
      "damaged_partitions": {"1": "part-00001/x"}, "leaf_only": true,
      "failure": "a GPU has failed", "sampling_busy_ratio": 0.5,
      "batches_per_second": 12.0, "sample_p50_seconds": 0.003,
      "sample_p99_seconds": 0.009, "sample_calls": 4,
      "resident_bytes": 1000}])"));
  EXPECT_EQ(MembersJson({}), nlohmann::ordered_json::array());
}

TEST(JsonLineTest, ShowsWhatServersSayWhateverItIs) {
  FleetMemberInfo member;
  member.version = "\xc3\x28\x1b[31m\xc2\x9b\n";
  const std::string line = JsonLine(MembersJson({member}));
  for (const unsigned char c : line) {
    EXPECT_TRUE(c >= ' ' && c < 0x7f) << line;
  }
  EXPECT_EQ(nlohmann::json::parse(line)[0]["version"],
            "\uFFFD(\x1b[31m\u009b\n");
}

}  // namespace
}  // namespace millrace
