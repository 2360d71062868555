// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/hedged_call.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/wire/error_info.h"
#include "tests/support/fake_call.h"
#include "tests/support/fake_replicas.h"
#include "tests/support/fake_timer.h"

namespace millrace {
namespace {

using Kind = Hedging::Kind;
using testing::FakeCall;
using testing::FakeReplicas;
using testing::FakeTimer;

constexpr int kPartition = 7;

// A request whose calls the test drives. Threads: any.
class FakeRequest final : public HedgedRequest {
 public:
  std::shared_ptr<Call> Send(std::shared_ptr<FleetMember> replica,
                             std::shared_ptr<CallObserver> observer) override {
    auto call = std::make_shared<FakeCall>(std::move(observer));
    {
      MutexLock lock(&mutex_);
      calls_.push_back(call);
      replicas_.push_back(replica->address);
    }
    if (on_send_ != nullptr) on_send_(*call);
    return call;
  }

  absl::Status Judge(const FleetMember&, SteadyTime,
                     absl::Status status) override {
    {
      MutexLock lock(&mutex_);
      ++judged_;
    }
    if (const auto act = std::exchange(on_judge_, nullptr)) act();
    return status;
  }

  void Finish(absl::Status status,
              std::shared_ptr<FleetMember> replica) override {
    MutexLock lock(&mutex_);
    ++finished_;
    result_ = std::move(status);
    answered_by_ = replica == nullptr ? "" : replica->address;
  }

  // Call before the start: run while a call is being sent or judged.
  void OnSend(std::function<void(FakeCall&)> act) { on_send_ = std::move(act); }
  void OnJudge(std::function<void()> act) { on_judge_ = std::move(act); }

  size_t sent() const {
    MutexLock lock(&mutex_);
    return calls_.size();
  }
  FakeCall& call(size_t index) const {
    MutexLock lock(&mutex_);
    return *calls_.at(index);
  }
  std::string replica(size_t index) const {
    MutexLock lock(&mutex_);
    return replicas_.at(index);
  }
  int judged() const {
    MutexLock lock(&mutex_);
    return judged_;
  }
  int finished() const {
    MutexLock lock(&mutex_);
    return finished_;
  }
  absl::Status result() const {
    MutexLock lock(&mutex_);
    return result_;
  }
  std::string answered_by() const {
    MutexLock lock(&mutex_);
    return answered_by_;
  }

 private:
  std::function<void(FakeCall&)> on_send_;
  std::function<void()> on_judge_;

  mutable Mutex mutex_;
  std::vector<std::shared_ptr<FakeCall>> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> replicas_ ABSL_GUARDED_BY(mutex_);
  int judged_ ABSL_GUARDED_BY(mutex_) = 0;
  int finished_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  std::string answered_by_ ABSL_GUARDED_BY(mutex_);
};

// A call to the first of two replicas.
class HedgedCallTest : public ::testing::Test {
 protected:
  HedgedCallTest() { AllowHedges(); }
  // A call lives until its calls to replicas have ended. Then it has finished,
  // and neither they nor the timer hold it any longer.
  ~HedgedCallTest() override {
    call_->Cancel();
    EXPECT_EQ(request_->finished(), 1);
    EXPECT_EQ(timer_.asleep(), 0u);
    const std::weak_ptr<Call> call = std::exchange(call_, nullptr);
    EXPECT_TRUE(call.expired());
  }

  // Allows five hedges.
  void AllowHedges() {
    for (int i = 0; i < 110; ++i) hedging_.NoteCall();
  }
  void ForbidHedges() {
    while (hedging_.Take()) {
    }
  }
  // Records how long answers have taken so far.
  void NoteAnswers(absl::Duration time) {
    for (size_t i = 0; i < Hedging::kMinTimes; ++i) {
      hedging_.NoteAnswer(Kind::kSample, time);
    }
  }

  void Start(absl::Duration timeout = absl::InfiniteDuration(),
             absl::Duration max_silence = absl::InfiniteDuration()) {
    call_ = StartHedgedCall({.replicas = replicas_,
                             .hedging = hedging_,
                             .timer = timer_,
                             .kind = Kind::kSample,
                             .partition = kPartition,
                             .deadline = timer_.Now() + timeout,
                             .max_silence = max_silence},
                            replicas_.member(0), request_);
  }

  FakeCall& first() { return request_->call(0); }
  FakeCall& second() { return request_->call(1); }

  void ExpectResult(const absl::Status& result, const std::string& from) {
    EXPECT_EQ(request_->finished(), 1);
    EXPECT_EQ(request_->result(), result);
    EXPECT_EQ(request_->answered_by(), from);
  }
  void ExpectOverdue(const std::string& message) {
    EXPECT_EQ(request_->finished(), 1);
    EXPECT_EQ(request_->result(), absl::DeadlineExceededError(message));
  }

  FakeTimer timer_;
  FakeReplicas replicas_{2};
  Hedging hedging_;
  std::shared_ptr<FakeRequest> request_ = std::make_shared<FakeRequest>();
  std::shared_ptr<Call> call_;
};

TEST_F(HedgedCallTest, AsksOneReplicaIfItAnswersSoon) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  timer_.Advance(absl::Milliseconds(30));
  EXPECT_TRUE(first().OnMessage().ok());
  timer_.Advance(absl::Milliseconds(100));
  first().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 0");
  EXPECT_EQ(request_->sent(), 1u);
  EXPECT_EQ(hedging_.hedges(), 0);
}

TEST_F(HedgedCallTest, HedgesAfterTheUsualResponseTime) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  timer_.Advance(absl::Milliseconds(39));
  EXPECT_EQ(request_->sent(), 1u);
  timer_.Advance(absl::Milliseconds(1));
  ASSERT_EQ(request_->sent(), 2u);
  EXPECT_EQ(request_->replica(1), "replica 1");
  EXPECT_EQ(hedging_.hedges(), 1);
}

TEST_F(HedgedCallTest, WaitsLongerWhereAnswersTakeLonger) {
  NoteAnswers(absl::Milliseconds(1200));
  Start();
  timer_.Advance(absl::Milliseconds(1199));
  EXPECT_EQ(request_->sent(), 1u);
  timer_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(request_->sent(), 2u);
}

// The replica's health is checked periodically, which must not delay a hedge.
TEST_F(HedgedCallTest, HedgesBetweenChecksOfTheReplica) {
  NoteAnswers(absl::Milliseconds(1230));
  Start();
  timer_.Advance(absl::Milliseconds(1229));
  EXPECT_EQ(request_->sent(), 1u);
  timer_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(request_->sent(), 2u);
}

TEST_F(HedgedCallTest, AsksAnotherAfterALongSilenceWhileNothingIsKnown) {
  Start();
  timer_.Advance(absl::Milliseconds(499));
  EXPECT_EQ(request_->sent(), 1u);
  timer_.Advance(absl::Milliseconds(1));
  EXPECT_EQ(request_->sent(), 2u);
}

TEST_F(HedgedCallTest, AsksNoOtherBeyondTheShareOfHedges) {
  NoteAnswers(absl::Milliseconds(40));
  ForbidHedges();
  Start();
  timer_.Advance(absl::Seconds(5));
  EXPECT_EQ(request_->sent(), 1u);
}

TEST_F(HedgedCallTest, CancelsTheLoser) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  timer_.Advance(absl::Milliseconds(40));
  EXPECT_TRUE(second().OnMessage().ok());
  EXPECT_TRUE(first().cancelled());
  EXPECT_EQ(request_->finished(), 0);
  second().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 1");
  EXPECT_EQ(request_->judged(), 1);
}

TEST_F(HedgedCallTest, IgnoresALateAnswer) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  timer_.Advance(absl::Milliseconds(40));
  // What arrives while the call is being cancelled.
  const std::shared_ptr<CallObserver> late = first().observer();
  EXPECT_TRUE(second().OnMessage().ok());
  EXPECT_TRUE(absl::IsCancelled(late->OnMessage()));
  EXPECT_TRUE(second().OnMessage().ok());
  second().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 1");
}

TEST_F(HedgedCallTest, SuccessIsNotHiddenByAFailureBeforeIt) {
  NoteAnswers(absl::Milliseconds(40));
  // While the failure of the first is being judged, the other succeeds.
  request_->OnJudge([this] {
    EXPECT_TRUE(second().OnMessage().ok());
    second().End(absl::OkStatus());
  });
  Start();
  timer_.Advance(absl::Milliseconds(40));
  first().End(absl::UnavailableError("no"));
  ExpectResult(absl::OkStatus(), "replica 1");
  EXPECT_EQ(request_->judged(), 2);
}

TEST_F(HedgedCallTest, AnsweredByTheFirstAfterTheOtherFailed) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  timer_.Advance(absl::Milliseconds(40));
  second().End(absl::UnavailableError("no"));
  EXPECT_EQ(request_->finished(), 0);
  EXPECT_TRUE(first().OnMessage().ok());
  first().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 0");
}

TEST_F(HedgedCallTest, FailsWithTheFirstFailureIfAllReplicasFail) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  timer_.Advance(absl::Milliseconds(40));
  second().End(absl::UnavailableError("failed first"));
  first().End(absl::UnavailableError("failed later"));
  ExpectResult(absl::UnavailableError("failed first"), "replica 1");
}

TEST_F(HedgedCallTest, FailsIfItsOnlyCallFails) {
  Start();
  first().End(absl::UnavailableError("no"));
  ExpectResult(absl::UnavailableError("no"), "replica 0");
  EXPECT_EQ(request_->sent(), 1u);
}

TEST_F(HedgedCallTest, MayEndWhileItIsBeingSent) {
  request_->OnSend([](FakeCall& call) {
    EXPECT_TRUE(call.OnMessage().ok());
    call.End(absl::OkStatus());
  });
  Start();
  ExpectResult(absl::OkStatus(), "replica 0");
}

TEST_F(HedgedCallTest, CancelEndsAllItsCalls) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  timer_.Advance(absl::Milliseconds(40));
  call_->Cancel();
  EXPECT_TRUE(first().cancelled());
  EXPECT_TRUE(second().cancelled());
  EXPECT_EQ(request_->finished(), 1);
  EXPECT_TRUE(absl::IsCancelled(request_->result())) << request_->result();
  // The replicas have not failed.
  EXPECT_EQ(request_->judged(), 0);
}

// A replica that stops cancels its calls too.
TEST_F(HedgedCallTest, JudgesACallThatTheReplicaCancelled) {
  Start();
  first().End(absl::CancelledError("the server is stopping"));
  EXPECT_EQ(request_->judged(), 1);
}

TEST_F(HedgedCallTest, JudgesACallThatFailedBeforeItWasCancelled) {
  Start();
  first().End(absl::UnavailableError("gone"));
  call_->Cancel();
  EXPECT_EQ(request_->judged(), 1);
}

TEST_F(HedgedCallTest, AsksNobodyOnceCancelled) {
  NoteAnswers(absl::Milliseconds(40));
  Start();
  call_->Cancel();
  timer_.Advance(absl::Seconds(5));
  EXPECT_EQ(request_->sent(), 1u);
}

TEST_F(HedgedCallTest, EndsAtItsDeadlineWithoutAMessage) {
  NoteAnswers(absl::Seconds(100));
  Start(absl::Milliseconds(300));
  timer_.Advance(absl::Milliseconds(299));
  EXPECT_EQ(request_->finished(), 0);
  timer_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(first().cancelled());
  ExpectOverdue("not done after 300ms");
  EXPECT_EQ(request_->judged(), 1);
}

TEST_F(HedgedCallTest, EndsAtItsDeadlineAfterAMessage) {
  Start(absl::Milliseconds(300));
  timer_.Advance(absl::Milliseconds(299));
  EXPECT_TRUE(first().OnMessage().ok());
  timer_.Advance(absl::Milliseconds(1));
  ExpectOverdue("not done after 300ms");
  EXPECT_EQ(request_->judged(), 1);
}

TEST_F(HedgedCallTest, EndsAllItsCallsAfterTooLongASilence) {
  Start(absl::InfiniteDuration(), /*max_silence=*/absl::Seconds(1));
  timer_.Advance(absl::Milliseconds(999));
  EXPECT_EQ(request_->finished(), 0);
  timer_.Advance(absl::Milliseconds(1));
  EXPECT_TRUE(first().cancelled());
  EXPECT_TRUE(second().cancelled());
  ExpectOverdue("no message for 1s");
  EXPECT_EQ(request_->judged(), 2);
}

TEST_F(HedgedCallTest, EachMessageEndsASilence) {
  Start(absl::InfiniteDuration(), /*max_silence=*/absl::Seconds(1));
  for (int i = 0; i < 5; ++i) {
    timer_.Advance(absl::Milliseconds(400));
    EXPECT_TRUE(first().OnMessage().ok());
  }
  timer_.Advance(absl::Milliseconds(999));
  EXPECT_EQ(request_->finished(), 0);
  timer_.Advance(absl::Milliseconds(1));
  ExpectOverdue("no message for 1s");
}

// Nothing could arrive during that time.
TEST_F(HedgedCallTest, TimeWhileTheProcessIsStoppedIsNotSilence) {
  Start(absl::InfiniteDuration(), /*max_silence=*/absl::Seconds(1));
  EXPECT_TRUE(first().OnMessage().ok());
  timer_.AdvanceStopped(absl::Seconds(30));
  EXPECT_EQ(request_->finished(), 0);
  EXPECT_TRUE(first().OnMessage().ok());
  first().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 0");
}

// A call cancelled for this reason must not be judged a failure.
TEST_F(HedgedCallTest, LeavesALostReplicaSilently) {
  NoteAnswers(absl::Seconds(100));
  replicas_.Stop(0);
  Start();
  timer_.Advance(absl::Milliseconds(500));
  EXPECT_TRUE(replicas_.suspected(0));
  EXPECT_EQ(request_->sent(), 1u);
  timer_.Advance(absl::Milliseconds(100));
  ASSERT_EQ(request_->sent(), 2u);
  EXPECT_TRUE(first().cancelled());
  EXPECT_EQ(request_->judged(), 0);
  EXPECT_EQ(hedging_.hedges(), 0);
  EXPECT_TRUE(second().OnMessage().ok());
  second().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 1");
}

TEST_F(HedgedCallTest, ReportsThatItGaveUpAStream) {
  replicas_.Stop(0);
  Start();
  EXPECT_TRUE(first().OnMessage().ok());
  timer_.Advance(absl::Milliseconds(600));
  EXPECT_EQ(request_->finished(), 1);
  const absl::Status status = request_->result();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), "replica 0 did not answer and was abandoned");
  EXPECT_EQ(ErrorInfoOf(status).partition, kPartition);
  EXPECT_EQ(request_->judged(), 0);
  EXPECT_EQ(request_->sent(), 1u);
}

TEST_F(HedgedCallTest, KeepsASilentReplicaThatIsAlive) {
  NoteAnswers(absl::Seconds(100));
  Start();
  EXPECT_TRUE(first().OnMessage().ok());
  timer_.Advance(absl::Seconds(10));
  EXPECT_TRUE(replicas_.suspected(0));
  EXPECT_FALSE(first().cancelled());
  EXPECT_TRUE(first().OnMessage().ok());
  first().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 0");
  EXPECT_EQ(request_->sent(), 1u);
}

// Giving up the only replica would not help.
TEST_F(HedgedCallTest, NeverSuspectsAnOnlyReplica) {
  replicas_.Stop(1);
  replicas_.Suspect(*replicas_.member(1));
  replicas_.Stop(0);
  Start();
  timer_.Advance(absl::Seconds(2));
  EXPECT_TRUE(first().OnMessage().ok());
  timer_.Advance(absl::Seconds(2));
  EXPECT_FALSE(replicas_.suspected(0));
  EXPECT_FALSE(first().cancelled());
  first().End(absl::OkStatus());
  ExpectResult(absl::OkStatus(), "replica 0");
}

// Threads send messages and ends, cancel, and wake the call at the same time.
class HedgedCallThreadsTest : public HedgedCallTest {
 protected:
  // Runs a call that is sent to both replicas. Returns how many of them were
  // allowed to answer.
  int Race(bool cancel) {
    NoteAnswers(absl::Milliseconds(40));
    AllowHedges();
    request_ = std::make_shared<FakeRequest>();
    Start();
    timer_.Advance(absl::Milliseconds(40));
    EXPECT_EQ(request_->sent(), 2u);
    bool won[2] = {};
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([this, i, &won] {
        won[i] = request_->call(i).OnMessage().ok();
        request_->call(i).End(won[i] ? absl::OkStatus()
                                     : absl::UnavailableError("no"));
      });
    }
    threads.emplace_back([this] { timer_.Advance(absl::Seconds(1)); });
    if (cancel) threads.emplace_back([this] { call_->Cancel(); });
    for (std::thread& thread : threads) thread.join();
    return (won[0] ? 1 : 0) + (won[1] ? 1 : 0);
  }
};

TEST_F(HedgedCallThreadsTest, OneReplicaWins) {
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(Race(/*cancel=*/false), 1);
    EXPECT_EQ(request_->finished(), 1);
    EXPECT_TRUE(request_->result().ok()) << request_->result();
  }
}

TEST_F(HedgedCallThreadsTest, ACancelledCallFinishesOnce) {
  for (int round = 0; round < 100; ++round) {
    EXPECT_LE(Race(/*cancel=*/true), 1);
    EXPECT_EQ(request_->finished(), 1);
  }
}

}  // namespace
}  // namespace millrace
