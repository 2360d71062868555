// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_failure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "common/base/field_error.h"
#include "common/base/status_lines.h"
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

  // `status` as sent by a home that has waited for another owner.
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
         absl::UnavailableError(
             "server replica 0: the call was ended before it was done"));
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

TEST_F(CallFailureTest, DamageElsewhereIsRetriedIfAReplicaIsIntact) {
  Expect(Classify(OfAnother(absl::DataLossError("torn file"))),
         Kind::kOtherLost, kOther, absl::UnavailableError("torn file"));
}

TEST_F(CallFailureTest, DamageElsewhereIsFinalWithoutAnIntactReplica) {
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

TEST_F(CallFailureTest, DamageOfItsOwnIsRefusedByThisServerOnly) {
  Expect(Classify(WithErrorInfo(absl::DataLossError("torn file"),
                                {.partition = kAsked, .moved = true})),
         Kind::kRefused, kAsked,
         absl::UnavailableError("server replica 0: torn file"));
}

TEST_F(CallFailureTest, AMessageThatIsTooLargeIsFinal) {
  const CallFailure failure =
      Classify(absl::ResourceExhaustedError("too large"));
  EXPECT_EQ(failure.kind, Kind::kFinal);
  EXPECT_FALSE(IsRetryable(failure.status)) << failure.status;
  EXPECT_EQ(FirstLine(failure.status).find("server replica 0: too large"), 0u);
  EXPECT_FALSE(AdviceOf(failure.status).empty());
}

TEST_F(CallFailureTest, MemoryThatThisClientLacksIsNotTheServersFailure) {
  const absl::Status status =
      WithReason(absl::ResourceExhaustedError("a batch needs 24 GB of memory"),
                 Reason{"out_of_memory"});
  Expect(Classify(status), Kind::kFinal, kAsked, status);
}

TEST_F(CallFailureTest, AWrongRequestIsFinal) {
  const absl::Status status = absl::InvalidArgumentError("no such column");
  Expect(Classify(status), Kind::kFinal, kAsked, status);
}

// A fleet of one stopped server, which the client believes ready, and the state
// of a fetch from it.
class NoteEndTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FleetOptions options;
    options.list = servers_.server(0).address();
    options.ready_interval = absl::Hours(1);
    auto fleet = Fleet::Create(options);
    ASSERT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
    const auto member = fleet_->Pick(0, SteadyNow() + absl::Minutes(1));
    ASSERT_TRUE(member.ok()) << member.status();
    member_ = *member;
    servers_.StopServer(0);  // so that it no longer answers
  }
  void TearDown() override { member_ = nullptr; }

  // Ends a call for partition 0 that took three seconds.
  absl::Status End(const absl::Status& status) {
    const CallContext context = {*fleet_,
                                 servers_.store()->manifest(),
                                 absl::Seconds(10),
                                 retry_,
                                 refusals_,
                                 hedging_,
                                 timer_,
                                 received_};
    const ReplicaCall call = {*member_, 0, timer_.Now()};
    timer_.Advance(absl::Seconds(3));
    return NoteEnd(context, call, status);
  }

  bool IsReady() const {
    return fleet_->Members().at(0).state == FleetMemberInfo::State::kReady;
  }
  // The remaining wait for a partition, out of 20 s; three quarters of that if
  // nothing waits for it yet.
  absl::Duration Left(int partition) const {
    return retry_.MaxSilenceOf(partition, timer_.Now());
  }

  testing::FleetHarness servers_{testing::SmallGraph(), 1};
  std::unique_ptr<Fleet> fleet_;
  std::shared_ptr<FleetMember> member_;
  Retry retry_{absl::Seconds(20)};
  Refusals refusals_;
  Hedging hedging_;
  testing::FakeTimer timer_;
  std::atomic<uint64_t> received_ = 0;
};

TEST_F(NoteEndTest, SuccessChangesNothing) {
  EXPECT_EQ(End(absl::OkStatus()), absl::OkStatus());
  EXPECT_TRUE(IsReady());
  EXPECT_EQ(Left(0), absl::Seconds(15));
}

TEST_F(NoteEndTest, TheFleetHearsOfFailuresOfTheServer) {
  EXPECT_TRUE(absl::IsUnavailable(End(absl::UnavailableError("gone"))));
  EXPECT_FALSE(IsReady());
  EXPECT_FALSE(refusals_.Include(0, *member_));
  EXPECT_EQ(Left(0), absl::Seconds(15));
}

// A home that has waited for another owner is healthy itself.
TEST_F(NoteEndTest, TheWaitForAnotherOwnerBeganWithTheCall) {
  const absl::Status gone =
      WithErrorInfo(absl::UnavailableError("gone"), {.partition = kOther});
  EXPECT_TRUE(absl::IsUnavailable(End(gone)));
  EXPECT_TRUE(IsReady());
  EXPECT_EQ(Left(kOther), absl::Seconds(17));
  EXPECT_EQ(Left(0), absl::Seconds(15));
}

TEST_F(NoteEndTest, ATimeoutCountsAsSilenceFromTheStart) {
  EXPECT_TRUE(absl::IsUnavailable(End(absl::DeadlineExceededError("late"))));
  EXPECT_FALSE(IsReady());
  EXPECT_EQ(Left(0), absl::Seconds(17));
  EXPECT_EQ(Left(kOther), absl::Seconds(15));
}

TEST_F(NoteEndTest, AServerThatRefusesIsNotAskedAgain) {
  EXPECT_TRUE(absl::IsUnavailable(
      End(WithErrorInfo(absl::FailedPreconditionError("not served here"),
                        {.partition = 0, .moved = true}))));
  EXPECT_TRUE(refusals_.Include(0, *member_));
  EXPECT_FALSE(IsReady());
  EXPECT_EQ(Left(0), absl::Seconds(15));
}

TEST_F(NoteEndTest, AnInvalidRequestIsNotBlamedOnTheServer) {
  const absl::Status wrong = absl::InvalidArgumentError("no such column");
  EXPECT_EQ(End(wrong), wrong);
  EXPECT_TRUE(IsReady());
  EXPECT_FALSE(refusals_.Include(0, *member_));
  EXPECT_EQ(Left(0), absl::Seconds(15));
}

}  // namespace
}  // namespace millrace
