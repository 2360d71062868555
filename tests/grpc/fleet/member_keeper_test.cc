// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/member_keeper.h"

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "common/base/mutex.h"

namespace millrace {
namespace {

std::weak_ptr<::grpc::Channel> AddChannel(FleetMember& member) {
  member.channels.Open(1, [] {
    return ::grpc::CreateChannel("127.0.0.1:1",
                                 ::grpc::InsecureChannelCredentials());
  });
  return member.channels.Next();
}

// The last holder may be a callback of gRPC, on whose thread no channel may be
// destroyed.
TEST(MemberKeeperTest, ChannelsOutliveTheLastHolderUntilTheyAreEnded) {
  MemberKeeper keeper;
  std::shared_ptr<FleetMember> member = keeper.Make();
  const std::weak_ptr<::grpc::Channel> channel = AddChannel(*member);
  keeper.EndUnused();
  EXPECT_FALSE(channel.expired());  // still held
  member.reset();
  EXPECT_FALSE(channel.expired());
  keeper.EndUnused();
  EXPECT_TRUE(channel.expired());
}

TEST(MemberKeeperTest, TheEndWaitsForHolders) {
  std::optional<MemberKeeper> keeper(std::in_place);
  std::shared_ptr<FleetMember> member = keeper->Make();
  const std::weak_ptr<::grpc::Channel> channel = AddChannel(*member);
  Notification ended;
  std::thread end([&] {
    keeper.reset();
    ended.Notify();
  });
  EXPECT_FALSE(ended.WaitForNotificationWithTimeout(absl::Milliseconds(200)));
  member.reset();
  end.join();
  EXPECT_TRUE(channel.expired());
}

}  // namespace
}  // namespace millrace
