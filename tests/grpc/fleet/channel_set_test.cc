// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/channel_set.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/steady_time.h"
#include "common/grpc/channel_args.h"
#include "tests/support/eventually.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/silent_listener.h"

namespace millrace {
namespace {

using ::millrace::testing::Eventually;
using ::millrace::testing::ScriptedSampler;
using ::millrace::testing::SilentListener;

using Channel = std::shared_ptr<::grpc::Channel>;

void Open(ChannelSet& channels, int count, const std::string& address) {
  channels.Open(count, [address] {
    return ::grpc::CreateCustomChannel(address,
                                       ::grpc::InsecureChannelCredentials(),
                                       ClientChannelArguments(1 << 20));
  });
}

// Makes an idle channel connect.
bool AwaitState(const Channel& channel, grpc_connectivity_state state) {
  return Eventually(
      [&] { return channel->GetState(/*try_to_connect=*/true) == state; });
}

TEST(ChannelSetTest, AreUsedInTurn) {
  ChannelSet channels;
  Open(channels, 2, "127.0.0.1:1");
  const Channel first = channels.Next();
  const Channel second = channels.Next();
  EXPECT_NE(first, second);
  EXPECT_EQ(channels.Next(), first);
  EXPECT_EQ(channels.Next(), second);
}

// Like an attempt to connect that waits for a timer that is late.
TEST(ChannelSetTest, AnAttemptToConnectThatDoesNotEndIsReplaced) {
  const SilentListener server;
  ChannelSet channels;
  Open(channels, 1, absl::StrCat("127.0.0.1:", server.port()));
  const Channel channel = channels.Next();
  ASSERT_TRUE(AwaitState(channel, GRPC_CHANNEL_CONNECTING));
  const SteadyTime lost = SteadyNow();
  channels.Restore(lost);
  channels.Restore(lost + absl::Seconds(9));
  EXPECT_EQ(channels.Next(), channel);
  channels.Restore(lost + absl::Seconds(10));
  const Channel next = channels.Next();
  EXPECT_NE(next, channel);
  // The new one has as much time.
  ASSERT_TRUE(AwaitState(next, GRPC_CHANNEL_CONNECTING));
  channels.Restore(lost + absl::Seconds(11));
  channels.Restore(lost + absl::Seconds(20));
  EXPECT_EQ(channels.Next(), next);
  channels.Restore(lost + absl::Seconds(21));
  EXPECT_NE(channels.Next(), next);
}

TEST(ChannelSetTest, ReplacedChannelsLiveUntilNoCallHoldsThem) {
  const SilentListener server;
  ChannelSet channels;
  Open(channels, 1, absl::StrCat("127.0.0.1:", server.port()));
  Channel channel = channels.Next();
  const std::weak_ptr<::grpc::Channel> watched = channel;
  ASSERT_TRUE(AwaitState(channel, GRPC_CHANNEL_CONNECTING));
  const SteadyTime lost = SteadyNow();
  channels.Restore(lost);
  channels.Restore(lost + absl::Seconds(10));
  ASSERT_NE(channels.Next(), channel);
  channels.Restore(lost + absl::Seconds(11));
  channel.reset();
  EXPECT_FALSE(watched.expired());
  channels.Restore(lost + absl::Seconds(12));
  EXPECT_TRUE(watched.expired());
}

TEST(ChannelSetTest, TheTimeWithoutAConnectionStartsAnewWithEachLoss) {
  std::optional<ScriptedSampler> server(std::in_place, nullptr, nullptr);
  ChannelSet channels;
  Open(channels, 1, server->address());
  const Channel channel = channels.Next();
  const SteadyTime start = SteadyNow();
  channels.Restore(start);  // idle
  ASSERT_TRUE(AwaitState(channel, GRPC_CHANNEL_READY));
  channels.Restore(start + absl::Hours(1));
  EXPECT_EQ(channels.Next(), channel);
  server.reset();
  ASSERT_TRUE(AwaitState(channel, GRPC_CHANNEL_TRANSIENT_FAILURE));
  channels.Restore(start + absl::Hours(2));
  channels.Restore(start + absl::Hours(2) + absl::Seconds(9));
  EXPECT_EQ(channels.Next(), channel);
}

}  // namespace
}  // namespace millrace
