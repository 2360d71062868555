// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/steady_time.h"
#include "common/wire/error_info.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/scripted_sampler.h"

namespace millrace {
namespace {

using testing::FleetHarness;
using ::testing::HasSubstr;

SteadyTime Soon() { return SteadyNow() + absl::Seconds(20); }

bool AreTwoReady(const std::vector<FleetMemberInfo>& members) {
  return members.size() == 2 &&
         std::all_of(members.begin(), members.end(), [](const auto& member) {
           return member.state == FleetMemberInfo::State::kReady;
         });
}

// A server may have been added to the list just before the others refused.
TEST(RefusalsTest, AreNotFinalBeforeTheListIsReread) {
  FleetHarness servers(testing::SmallGraph(), 1);
  testing::ScriptedSampler first(servers.Stub(0), {});
  testing::ScriptedSampler second(servers.Stub(0), {});
  const auto path = testing::TestDirectory("refusals") / "servers";
  std::ofstream(path) << first.address() << '\n';
  FleetOptions options;
  options.list = "@" + path.string();
  options.file_interval = absl::Hours(1);
  const auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  const auto known = (*fleet)->Pick(0, Soon());
  ASSERT_TRUE(known.ok()) << known.status();
  std::ofstream(path, std::ios::app) << second.address() << '\n';

  const absl::Status refusal =
      WithErrorInfo(absl::FailedPreconditionError("has no such split"),
                    {.partition = 0, .moved = true});
  Refusals refusals;
  refusals.Add(0, **known, refusal);
  const absl::Status early = refusals.Pick(**fleet, 0).status();
  EXPECT_TRUE(absl::IsUnavailable(early)) << early;
  ASSERT_TRUE((*fleet)->AwaitMembers(AreTwoReady, Soon()).ok());
  refusals.Add(0, **known, refusal);
  const auto added = refusals.Pick(**fleet, 0);
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ((*added)->address, second.address());

  refusals.Add(0, **added, refusal);
  EXPECT_TRUE((*fleet)->AwaitList(refusals.Start(0), Soon()));
  const absl::Status status = refusals.Pick(**fleet, 0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  for (const std::string& address : {first.address(), second.address()}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(address));
  }
}

// Another server may turn out to have the partition, so those that refused are
// asked again.
TEST(RefusalsTest, AreForgottenWhileAnotherServerMayAnswer) {
  FleetHarness servers(testing::SmallGraph(), 1);
  FleetOptions options;
  options.list = servers.server(0).address() + ",127.0.0.1:1";
  const auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  const auto known = (*fleet)->Pick(0, Soon());
  ASSERT_TRUE(known.ok()) << known.status();
  Refusals refusals;
  refusals.Add(0, **known,
               WithErrorInfo(absl::FailedPreconditionError("no such split"),
                             {.partition = 0, .moved = true}));
  EXPECT_TRUE(refusals.Include(0, **known));
  const absl::Status status = refusals.Pick(**fleet, 0).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_FALSE(refusals.Include(0, **known));
  const auto again = refusals.Pick(**fleet, 0);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *known);
}

}  // namespace
}  // namespace millrace
