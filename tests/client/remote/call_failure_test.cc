// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_failure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "common/wire/error_info.h"
#include "tests/support/fake_replicas.h"
#include "tests/support/fake_timer.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

using Kind = CallFailure::Kind;

constexpr int kAsked = 2;
constexpr int kOther = 5;

// Failures of a call to "replica 0" for partition kAsked that took 3 s.
class CallFailureTest : public ::testing::Test {
 protected:
  CallFailure Classify(const absl::Status& status) {
    const SteadyTime start = SteadyTime() + absl::Hours(1);
    return ClassifyFailure(replicas_, {*replicas_.member(0), kAsked, start},
                           status, start + absl::Seconds(3));
  }

  static void Expect(const CallFailure& failure, Kind kind, int partition,
                     const absl::Status& status) {
    EXPECT_EQ(failure.kind, kind);
    EXPECT_EQ(failure.partition, partition);
    EXPECT_EQ(failure.status.code(), status.code());
    EXPECT_EQ(failure.status.message(), status.message());
    if (IsRetryable(failure.status)) {
      EXPECT_EQ(ErrorInfoOf(failure.status).partition, partition);
    }
  }

  // `status` as a home sends it that has waited for another owner.
  static absl::Status OfAnother(const absl::Status& status) {
    return WithErrorInfo(status, {.partition = kOther});
  }

  testing::FakeReplicas replicas_{1};
};

TEST_F(CallFailureTest, ABrokenConnectionIsTransient) {
  const absl::Status status = absl::UnavailableError("connection reset");
  Expect(Classify(status), Kind::kTransient, kAsked, status);
}

TEST_F(CallFailureTest, ATimeoutSaysHowLongNobodyAnswered) {
  Expect(Classify(absl::DeadlineExceededError("late")), Kind::kTimeout, kAsked,
         absl::UnavailableError("no answer from replica 0 within 3s"));
}

TEST_F(CallFailureTest, ATimeoutOfAnotherPartitionKeepsItsMessage) {
  Expect(Classify(OfAnother(absl::DeadlineExceededError("gave up"))),
         Kind::kTimeout, kOther, absl::UnavailableError("gave up"));
}

TEST_F(CallFailureTest, AServerThatStopsEndsItsCalls) {
  Expect(Classify(absl::CancelledError("")), Kind::kTransient, kAsked,
         absl::UnavailableError("replica 0 ended a call before it was done"));
}

TEST_F(CallFailureTest, AMovedPartitionIsRefusedByThisServerOnly) {
  const absl::Status status =
      WithErrorInfo(absl::FailedPreconditionError("not served here"),
                    {.partition = kAsked, .moved = true});
  Expect(Classify(status), Kind::kRefused, kAsked,
         absl::UnavailableError("server replica 0: not served here"));
}

TEST_F(CallFailureTest, ACertificateIsRefusedByThisServerOnly) {
  Expect(Classify(absl::PermissionDeniedError("not allowed")), Kind::kRefused,
         kAsked, absl::UnavailableError("server replica 0: not allowed"));
}

TEST_F(CallFailureTest, AnotherPartitionsServerIsLost) {
  const absl::Status status = OfAnother(absl::UnavailableError("no server"));
  Expect(Classify(status), Kind::kOtherLost, kOther, status);
}

TEST_F(CallFailureTest, AnotherPartitionsServerThatIsBusyIsNotLost) {
  const absl::Status busy = absl::ResourceExhaustedError("busy");
  const CallFailure failure = Classify(WithErrorInfo(
      busy, {.partition = kOther, .retry_after = absl::Seconds(1)}));
  Expect(failure, Kind::kTransient, kOther, busy);
}

TEST_F(CallFailureTest, DamageElsewhereIsRetriedWhereAReplicaIsSound) {
  Expect(Classify(OfAnother(absl::DataLossError("torn file"))),
         Kind::kOtherLost, kOther, absl::UnavailableError("torn file"));
}

TEST_F(CallFailureTest, DamageElsewhereIsFinalWithoutASoundReplica) {
  replicas_.Stop(0);
  replicas_.Suspect(*replicas_.member(0));
  const absl::Status status = OfAnother(absl::DataLossError("torn file"));
  Expect(Classify(status), Kind::kFinal, kOther, status);
}

TEST_F(CallFailureTest, ABusyServerIsTransient) {
  const absl::Status status =
      WithErrorInfo(absl::ResourceExhaustedError("busy"),
                    {.partition = std::nullopt, .retry_after = kRetryAfter});
  const CallFailure failure = Classify(status);
  Expect(failure, Kind::kTransient, kAsked, status);
  EXPECT_EQ(ErrorInfoOf(failure.status).retry_after, kRetryAfter);
}

TEST_F(CallFailureTest, AMessageThatIsTooLargeIsFinal) {
  const CallFailure failure =
      Classify(absl::ResourceExhaustedError("too large"));
  EXPECT_EQ(failure.kind, Kind::kFinal);
  EXPECT_FALSE(IsRetryable(failure.status)) << failure.status;
  EXPECT_EQ(FirstLine(failure.status).find("server replica 0: too large"), 0u);
  EXPECT_FALSE(AdviceOf(failure.status).empty());
}

TEST_F(CallFailureTest, AWrongRequestIsFinal) {
  const absl::Status status = absl::InvalidArgumentError("no such column");
  Expect(Classify(status), Kind::kFinal, kAsked, status);
}

// A home that has waited for another owner is sound itself.
TEST(NoteEndTest, TheFleetHearsOnlyOfFailuresOfTheServerItself) {
  testing::FleetHarness servers(testing::SmallGraph(), 1);
  FleetOptions options;
  options.list = servers.server(0).address();
  options.ready_interval = absl::Hours(1);
  const auto fleet = Fleet::Create(options);
  ASSERT_TRUE(fleet.ok()) << fleet.status();
  const auto member = (*fleet)->Pick(0, SteadyNow() + absl::Minutes(1));
  ASSERT_TRUE(member.ok()) << member.status();
  servers.StopServer(0);  // so that it answers no more
  Retry retry(absl::Seconds(10));
  Refusals refusals;
  Hedging hedging;
  testing::FakeTimer timer;
  std::atomic<uint64_t> received = 0;
  const CallContext context = {**fleet,
                               servers.store()->manifest(),
                               absl::Seconds(10),
                               retry,
                               refusals,
                               hedging,
                               timer,
                               received};
  const ReplicaCall call = {**member, 0, timer.Now()};
  const absl::Status gone = absl::UnavailableError("gone");
  const auto state = [&fleet] { return (*fleet)->Members().at(0).state; };
  EXPECT_TRUE(NoteEnd(context, call, absl::OkStatus()).ok());
  EXPECT_TRUE(absl::IsUnavailable(
      NoteEnd(context, call, WithErrorInfo(gone, {.partition = kOther}))));
  EXPECT_EQ(state(), FleetMemberInfo::State::kReady);
  EXPECT_TRUE(absl::IsUnavailable(NoteEnd(context, call, gone)));
  EXPECT_NE(state(), FleetMemberInfo::State::kReady);
}

}  // namespace
}  // namespace millrace
