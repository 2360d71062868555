// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/hedged_call.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/wire/error_info.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/scripted_sampler.h"

namespace millrace {
namespace {

using Kind = Hedging::Kind;

// Far longer than a loaded machine needs.
constexpr absl::Duration kPatience = absl::Seconds(20);

// A call to a replica, driven by the test.
class Leg final : public Call {
 public:
  Leg(std::shared_ptr<FleetMember> member, HedgedCallOptions::Events events)
      : member_(std::move(member)), events_(std::move(events)) {}

  const FleetMember& member() const { return *member_; }
  SteadyTime start() const { return start_; }

  absl::Status Sign() { return events_.on_sign(); }
  // Sign() for an answer that arrives while the call is being cancelled.
  std::function<absl::Status()> late_sign() const { return events_.on_sign; }
  void End(absl::Status status) {
    {
      MutexLock lock(&mutex_);
      if (std::exchange(over_, true)) return;
    }
    // Destroying the events also ends what they hold.
    const HedgedCallOptions::Events events = std::move(events_);
    member_.reset();
    events.done(std::move(status));
  }

  // Ends at once.
  void Cancel() override {
    if (!cancelled_.HasBeenNotified()) cancelled_.Notify();
    End(absl::CancelledError("cancelled"));
  }
  bool AwaitCancel(absl::Duration patience = kPatience) const {
    return cancelled_.WaitForNotificationWithTimeout(patience);
  }

 private:
  std::shared_ptr<FleetMember> member_;
  HedgedCallOptions::Events events_;
  const SteadyTime start_ = SteadyNow();
  Notification cancelled_;
  Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
};

// A call to one of two replicas, of which the first may stop describing itself.
class HedgedCallTest : public ::testing::Test {
 protected:
  HedgedCallTest()
      : real_(testing::SmallGraph(), 1), scripted_(real_.Stub(0), {}) {
    FleetOptions options;
    options.list = scripted_.address() + "," + real_.server(0).address();
    auto fleet = Fleet::Create(options);
    EXPECT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
    EXPECT_TRUE(
        testing::Eventually([&] { return fleet_->Owners(0).size() == 2; }));
    // Allows some hedges.
    for (int i = 0; i < 100; ++i) hedging_.NoteCall();
  }
  ~HedgedCallTest() override { release_.Notify(); }

  // Records how long answers have taken so far.
  void NoteAnswers(absl::Duration time) {
    for (size_t i = 0; i < Hedging::kLeastTimes; ++i) {
      hedging_.NoteAnswer(Kind::kSample, time);
    }
  }

  void StopDescribing() {
    scripted_.OnDescribe([this] {
      release_.WaitForNotification();
      return grpc::Status::OK;
    });
  }

  void Start(absl::Duration patience = absl::InfiniteDuration()) {
    std::shared_ptr<FleetMember> first;
    for (const auto& owner : fleet_->Owners(0)) {
      if (owner->address == scripted_.address()) first = owner;
    }
    ASSERT_NE(first, nullptr);
    call_ = StartHedgedCall(
        std::move(first),
        {.fleet = *fleet_,
         .hedging = hedging_,
         .kind = Kind::kSample,
         .partition = 0,
         .deadline = deadline_,
         .patience = patience,
         .start =
             [this](std::shared_ptr<FleetMember> member,
                    HedgedCallOptions::Events events) {
               MutexLock lock(&mutex_);
               leg_started_.NotifyAll();
               return legs_.emplace_back(
                   std::make_shared<Leg>(std::move(member), std::move(events)));
             },
         .on_end =
             [this](const FleetMember&, SteadyTime, absl::Status status) {
               ++ends_;
               if (const auto act = std::exchange(on_end_, {})) act();
               return status;
             },
         .done =
             [this](absl::Status status, std::shared_ptr<FleetMember>) {
               result_ = std::move(status);
               done_.Notify();
             }});
  }

  // Waits for the call that is started as number `index`, counted from 0, and
  // returns it.
  Leg& At(size_t index) {
    MutexLock lock(&mutex_);
    const auto started = [this, index]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return legs_.size() > index;
    };
    leg_started_.WaitFor(&mutex_, kPatience, started);
    return *legs_.at(index);
  }
  size_t legs() {
    MutexLock lock(&mutex_);
    return legs_.size();
  }

  absl::Status Result() {
    EXPECT_TRUE(done_.WaitForNotificationWithTimeout(kPatience));
    return result_;
  }

  SteadyTime deadline_ = SteadyTime::InfiniteFuture();
  testing::FleetHarness real_;
  Notification release_;
  testing::ScriptedSampler scripted_;
  std::unique_ptr<Fleet> fleet_;
  Hedging hedging_;
  std::atomic<int> ends_ = 0;
  std::function<void()> on_end_;
  Mutex mutex_;
  CondVar leg_started_;
  std::deque<std::shared_ptr<Leg>> legs_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Call> call_;
  absl::Status result_;
  Notification done_;
};

TEST_F(HedgedCallTest, IsSentTwiceNoSoonerThanAnswersTake) {
  NoteAnswers(absl::Milliseconds(1200));
  Start();
  EXPECT_GE(At(1).start() - At(0).start(), absl::Milliseconds(1190));
  EXPECT_EQ(hedging_.hedges(), 1);
  EXPECT_TRUE(At(1).Sign().ok());
  EXPECT_TRUE(At(0).AwaitCancel());
  At(1).End(absl::OkStatus());
  EXPECT_TRUE(Result().ok());
  EXPECT_EQ(ends_, 1);
}

TEST_F(HedgedCallTest, EndsAllAttemptsAfterTooLongASilence) {
  Start(absl::Seconds(1));
  EXPECT_TRUE(At(0).AwaitCancel());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Result())) << result_;
  EXPECT_GE(SteadyNow() - At(0).start(), absl::Milliseconds(990));
  EXPECT_EQ(ends_, static_cast<int>(legs()));
}

TEST_F(HedgedCallTest, EndsAnAttemptThatFallsSilentForTooLong) {
  Start(absl::Seconds(1));
  (void)At(0).Sign();
  EXPECT_TRUE(At(0).AwaitCancel());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Result())) << result_;
}

TEST_F(HedgedCallTest, IgnoresTheSlowerReplica) {
  NoteAnswers(absl::Milliseconds(10));
  Start();
  Leg& hedge = At(1);
  const std::function<absl::Status()> late_sign = At(0).late_sign();
  EXPECT_TRUE(hedge.Sign().ok());
  EXPECT_TRUE(absl::IsCancelled(late_sign()));
  EXPECT_TRUE(hedge.Sign().ok());
  hedge.End(absl::OkStatus());
  EXPECT_TRUE(Result().ok()) << result_;
}

TEST_F(HedgedCallTest, IsSentTwiceAfterALongSilenceWhileNothingIsKnown) {
  Start();
  EXPECT_GE(At(1).start() - At(0).start(), absl::Milliseconds(490));
  At(1).End(absl::UnavailableError("no"));
  EXPECT_TRUE(At(0).Sign().ok());
  At(0).End(absl::OkStatus());
  EXPECT_TRUE(Result().ok());
}

TEST_F(HedgedCallTest, SuccessIsNotHiddenByAFailureBeforeIt) {
  NoteAnswers(absl::Milliseconds(10));
  Start();
  Leg& hedge = At(1);
  // The second call succeeds while the failure of the first is being handled.
  on_end_ = [&] {
    EXPECT_TRUE(hedge.Sign().ok());
    hedge.End(absl::OkStatus());
  };
  At(0).End(absl::UnavailableError("no"));
  EXPECT_TRUE(Result().ok()) << result_;
  EXPECT_EQ(ends_, 2);
}

TEST_F(HedgedCallTest, FailsWithTheFirstFailureWithoutAnyMessage) {
  NoteAnswers(absl::Milliseconds(10));
  Start();
  At(1).End(absl::UnavailableError("failed first"));
  At(0).End(absl::UnavailableError("failed later"));
  EXPECT_EQ(Result(), absl::UnavailableError("failed first"));
}

// A call cancelled for this reason must not be reported as a failure.
TEST_F(HedgedCallTest, LeavesALostReplicaSilently) {
  NoteAnswers(absl::Seconds(100));
  StopDescribing();
  Start();
  const std::string lost = At(0).member().address;
  EXPECT_NE(At(1).member().address, lost);
  EXPECT_TRUE(At(0).AwaitCancel());
  EXPECT_EQ(ends_, 0);
  EXPECT_EQ(hedging_.hedges(), 0);
  EXPECT_TRUE(At(1).Sign().ok());
  At(1).End(absl::OkStatus());
  EXPECT_TRUE(Result().ok()) << result_;
}

TEST_F(HedgedCallTest, ReportsThatItGaveUpAStream) {
  StopDescribing();
  Start();
  const std::string lost = At(0).member().address;
  EXPECT_TRUE(At(0).Sign().ok());
  const absl::Status status = Result();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), lost + " did not answer and was given up");
  EXPECT_EQ(ErrorInfoOf(status).partition, 0);
  EXPECT_EQ(ends_, 0);
  EXPECT_EQ(legs(), 1u);
}

// Slow answers are hedged, but not all of them.
TEST_F(HedgedCallTest, KeepsASilentReplicaThatIsAlive) {
  NoteAnswers(absl::Seconds(100));
  Start();
  EXPECT_TRUE(At(0).Sign().ok());
  EXPECT_FALSE(At(0).AwaitCancel(absl::Seconds(2)));
  EXPECT_TRUE(At(0).Sign().ok());
  At(0).End(absl::OkStatus());
  EXPECT_TRUE(Result().ok()) << result_;
  EXPECT_EQ(legs(), 1u);
}

// The call does not rely on gRPC's own timers, which may be late.
TEST_F(HedgedCallTest, EndsAtItsDeadlineWithoutASign) {
  NoteAnswers(absl::Seconds(100));
  deadline_ = SteadyNow() + absl::Milliseconds(300);
  Start();
  EXPECT_TRUE(At(0).AwaitCancel());
  EXPECT_GE(SteadyNow(), deadline_);
  EXPECT_TRUE(absl::IsDeadlineExceeded(Result())) << result_;
  EXPECT_EQ(ends_, 1);
}

TEST_F(HedgedCallTest, EndsAtItsDeadlineAfterASign) {
  deadline_ = SteadyNow() + absl::Milliseconds(300);
  Start();
  EXPECT_TRUE(At(0).Sign().ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Result())) << result_;
  EXPECT_GE(SteadyNow(), deadline_);
  EXPECT_EQ(ends_, 1);
}

}  // namespace
}  // namespace millrace
