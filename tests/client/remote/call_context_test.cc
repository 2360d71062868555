// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_context.h"

#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_timer.h"

namespace millrace {
namespace {

// An unused fleet with a partition wait of 20 s.
class CallContextTest : public ::testing::Test {
 protected:
  CallContextTest() {
    FleetOptions options;
    options.list = "127.0.0.1:1";
    fleet_ = Fleet::Create(options).value();
  }

  CallContext Context(absl::Duration timeout) {
    return {*fleet_,   manifest_, timeout, retry_,
            refusals_, hedging_,  timer_,  received_};
  }

  const Manifest manifest_;
  std::unique_ptr<Fleet> fleet_;
  Retry retry_{absl::Seconds(20)};
  Refusals refusals_;
  Hedging hedging_;
  testing::FakeTimer timer_;
  std::atomic<uint64_t> received_ = 0;
};

TEST_F(CallContextTest, CallTimeoutsFollowThePartitionWait) {
  const SteadyTime now = timer_.Now();
  retry_.NoteWait(4, now - absl::Seconds(13));
  const CallContext context = Context(absl::Minutes(1));
  const HedgedCallOptions waits =
      HedgedOptions(context, Hedging::Kind::kGather, 4);
  EXPECT_EQ(waits.kind, Hedging::Kind::kGather);
  EXPECT_EQ(waits.partition, 4);
  EXPECT_EQ(waits.deadline, now + absl::Seconds(7));
  EXPECT_EQ(waits.max_silence, absl::Seconds(7));
  const HedgedCallOptions other =
      HedgedOptions(context, Hedging::Kind::kSample, 5);
  EXPECT_EQ(other.deadline, now + absl::Seconds(7));
  EXPECT_EQ(other.max_silence, absl::Seconds(15));
  const HedgedCallOptions brief =
      HedgedOptions(Context(absl::Seconds(3)), Hedging::Kind::kSample, 5);
  EXPECT_EQ(brief.deadline, now + absl::Seconds(3));
}

TEST_F(CallContextTest, FramesAreAnswersAndTheirPayloadsAreCounted) {
  const CallContext context = Context(absl::Minutes(1));
  const std::string payload(300, 'x');
  const grpc::Slice slice(payload);
  const auto frame = ReceivedFrame::Parse(MakeFrame(FrameHeader(), {slice}));
  ASSERT_TRUE(frame.ok()) << frame.status();
  retry_.NoteWait(4, timer_.Now());
  timer_.Advance(absl::Seconds(6));
  const SteadyTime now = timer_.Now();
  EXPECT_EQ(retry_.MaxSilenceOf(4, now), absl::Seconds(14));
  NoteFrame(context, 5, *frame);
  EXPECT_EQ(retry_.MaxSilenceOf(4, now), absl::Seconds(14));
  NoteFrame(context, 4, *frame);
  EXPECT_EQ(retry_.MaxSilenceOf(4, now), absl::Seconds(15));
  EXPECT_EQ(received_, 600u);
}

TEST_F(CallContextTest, ProtocolViolationsNameTheServer) {
  FleetMember member;
  member.address = "here:7001";
  EXPECT_EQ(ProtocolError(member, absl::InvalidArgumentError("no frame")),
            absl::InternalError("server here:7001 breaks the protocol: no "
                                "frame\nrun the same version everywhere"));
}

}  // namespace
}  // namespace millrace
