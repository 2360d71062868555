// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/unary_call.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/time.h"
#include "sampler.pb.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/silent_listener.h"

namespace millrace {
namespace {

// Accepts all messages, and waits for the end.
class WaitingObserver final : public CallObserver {
 public:
  explicit WaitingObserver(absl::Status verdict = absl::OkStatus())
      : verdict_(std::move(verdict)) {}
  absl::Status OnMessage() override {
    ++messages_;
    return verdict_;
  }
  void OnEnd(absl::Status status) override {
    status_ = std::move(status);
    end_.Notify();
  }
  const absl::Status& AwaitEnd() const {
    end_.WaitForNotification();
    return status_;
  }
  int messages() const { return messages_; }

 private:
  const absl::Status verdict_;
  int messages_ = 0;
  absl::Status status_;
  Notification end_;
};

std::shared_ptr<FleetMember> MemberAt(const std::string& address) {
  auto member = std::make_shared<FleetMember>();
  member->address = address;
  member->channels.Open(1, [address] {
    return ::grpc::CreateChannel(address, ::grpc::InsecureChannelCredentials());
  });
  return member;
}

// Drops a call, and waits until gRPC's threads have dropped it too. They must
// not be the last to have the member's connections, which none of them can
// close.
void Release(std::shared_ptr<Call> call,
             const std::shared_ptr<FleetMember>& member) {
  call.reset();
  EXPECT_TRUE(testing::Eventually([&] { return member.use_count() == 1; }));
}

// Calls Describe; counts the replies.
std::shared_ptr<Call> StartDescribe(
    const std::shared_ptr<FleetMember>& member,
    const std::shared_ptr<WaitingObserver>& observer, int& replies) {
  auto context = std::make_unique<::grpc::ClientContext>();
  context->set_deadline(ToGrpcTime(SteadyNow() + absl::Seconds(60)));
  v1::DescribeRequest request;
  request.set_look_for_splits(true);
  return StartUnaryCall({.method = "/millrace.v1.Sampler/Describe",
                         .request = SerializeMessage(request),
                         .member = member,
                         .context = std::move(context),
                         .on_reply =
                             [&replies](::grpc::ByteBuffer& bytes) {
                               ++replies;
                               v1::DescribeReply reply;
                               return ParseMessage(bytes, reply);
                             },
                         .observer = observer});
}

TEST(UnaryCallTest, CountsTowardsTheMembersOutstandingBytesUntilItEnds) {
  const testing::SilentListener silent;
  const auto member = MemberAt("127.0.0.1:" + std::to_string(silent.port()));
  const auto observer = std::make_shared<WaitingObserver>();
  int replies = 0;
  auto call = StartDescribe(member, observer, replies);
  // A mebibyte for the reply, and the two bytes of the request.
  EXPECT_EQ(member->outstanding_bytes.load(), (1 << 20) + 2);
  call->Cancel();
  EXPECT_TRUE(absl::IsCancelled(observer->AwaitEnd())) << observer->AwaitEnd();
  EXPECT_EQ(member->outstanding_bytes.load(), 0);
  EXPECT_EQ(observer->messages(), 0);
  EXPECT_EQ(replies, 0);
  Release(std::move(call), member);
}

TEST(UnaryCallTest, RepliesAreDeliveredIfTheObserverAcceptsThem) {
  testing::FleetHarness servers(testing::SmallGraph(), 1);
  const auto member = MemberAt(servers.server(0).address());
  for (const bool accept : {true, false}) {
    const auto observer = std::make_shared<WaitingObserver>(
        accept ? absl::OkStatus() : absl::CancelledError("too late"));
    int replies = 0;
    auto call = StartDescribe(member, observer, replies);
    EXPECT_EQ(observer->AwaitEnd().ok(), accept) << observer->AwaitEnd();
    EXPECT_EQ(observer->messages(), 1);
    EXPECT_EQ(replies, accept ? 1 : 0);
    EXPECT_EQ(member->outstanding_bytes.load(), 0);
    Release(std::move(call), member);
  }
}

}  // namespace
}  // namespace millrace
