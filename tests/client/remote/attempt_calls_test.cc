// SPDX-License-Identifier: Apache-2.0
#include "client/remote/attempt_calls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/fake_call.h"

namespace millrace {
namespace {

using testing::FakeCall;

// Reports the end of a FakeCall to its observers.
class DoneObserver final : public CallObserver {
 public:
  explicit DoneObserver(CallDone done) : done_(std::move(done)) {}
  absl::Status OnMessage() override { return absl::OkStatus(); }
  void OnEnd(absl::Status status) override { done_(std::move(status)); }

 private:
  const CallDone done_;
};

class AttemptCallsTest : public ::testing::Test {
 protected:
  // Starts a call; the test ends it.
  std::shared_ptr<FakeCall> Add() {
    std::shared_ptr<FakeCall> call;
    EXPECT_TRUE(calls_
                    ->Add([&call](CallDone done) {
                      call = std::make_shared<FakeCall>(
                          std::make_shared<DoneObserver>(std::move(done)));
                      return call;
                    })
                    .ok());
    return call;
  }

  absl::Status AddFailing(const absl::Status& why) {
    return calls_->Add([&](const CallDone&) { return why; });
  }

  const absl::Status lost_ = absl::UnavailableError("lost");
  int ends_ = 0;
  absl::Status result_ = absl::UnknownError("has not ended");
  const std::shared_ptr<AttemptCalls> calls_ =
      std::make_shared<AttemptCalls>([this](absl::Status result) {
        ++ends_;
        result_ = std::move(result);
      });
};

TEST_F(AttemptCallsTest, EndsWithTheLastCall) {
  const auto first = Add();
  const auto second = Add();
  calls_->Close(absl::OkStatus());
  second->End(absl::OkStatus());
  EXPECT_EQ(ends_, 0);
  first->End(absl::OkStatus());
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(result_.ok()) << result_;
}

TEST_F(AttemptCallsTest, DoesNotEndBeforeAllCallsAreStarted) {
  Add()->End(absl::OkStatus());
  EXPECT_EQ(ends_, 0);
  const auto second = Add();
  calls_->Close(absl::OkStatus());
  EXPECT_EQ(ends_, 0);
  second->End(absl::OkStatus());
  EXPECT_EQ(ends_, 1);
}

TEST_F(AttemptCallsTest, EndsAtOnceWithoutCalls) {
  calls_->Close(absl::OkStatus());
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(result_.ok()) << result_;
}

TEST_F(AttemptCallsTest, FailsIfItsCallsCannotBeStarted) {
  calls_->Close(lost_);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(result_, lost_);
}

TEST_F(AttemptCallsTest, ARunningCallMayAddOthers) {
  const auto stream = Add();
  calls_->Close(absl::OkStatus());
  const auto rows = Add();
  stream->End(absl::OkStatus());
  EXPECT_EQ(ends_, 0);
  rows->End(absl::OkStatus());
  EXPECT_EQ(ends_, 1);
}

TEST_F(AttemptCallsTest, TheFirstFailureCancelsTheOtherCalls) {
  const auto first = Add();
  const auto second = Add();
  calls_->Close(absl::OkStatus());
  first->End(lost_);
  EXPECT_TRUE(second->cancelled());
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(result_, lost_);
}

TEST_F(AttemptCallsTest, CallsAddedAfterAFailureAreCancelled) {
  Add()->End(lost_);
  EXPECT_TRUE(Add()->cancelled());
  calls_->Close(absl::OkStatus());
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(result_, lost_);
}

TEST_F(AttemptCallsTest, ACallThatDoesNotStartIsAFailure) {
  const auto first = Add();
  EXPECT_EQ(AddFailing(lost_), lost_);
  EXPECT_TRUE(first->cancelled());
  calls_->Close(lost_);
  EXPECT_EQ(ends_, 1);
  EXPECT_EQ(result_, lost_);
}

TEST_F(AttemptCallsTest, CancelEndsEarlierAndLaterCalls) {
  const auto first = Add();
  calls_->Cancel();
  EXPECT_TRUE(first->cancelled());
  EXPECT_TRUE(Add()->cancelled());
  calls_->Close(absl::OkStatus());
  EXPECT_EQ(ends_, 1);
  EXPECT_TRUE(absl::IsCancelled(result_)) << result_;
}

TEST_F(AttemptCallsTest, CancelAfterTheEndDoesNothing) {
  calls_->Close(absl::OkStatus());
  calls_->Cancel();
  EXPECT_EQ(ends_, 1);
}

// The calls hold their receivers, which may be large.
TEST_F(AttemptCallsTest, ReleasesItsCallsBeforeItEnds) {
  std::weak_ptr<FakeCall> call;
  bool gone = false;
  const auto calls = std::make_shared<AttemptCalls>(
      [&](const absl::Status&) { gone = call.expired(); });
  std::shared_ptr<CallObserver> observer;
  ASSERT_TRUE(calls
                  ->Add([&](CallDone done) {
                    observer = std::make_shared<DoneObserver>(std::move(done));
                    const auto started = std::make_shared<FakeCall>(observer);
                    call = started;
                    return started;
                  })
                  .ok());
  calls->Close(absl::OkStatus());
  EXPECT_FALSE(call.expired());
  observer->OnEnd(absl::OkStatus());
  EXPECT_TRUE(gone);
}

// Calls end, fail and are added on several threads while they are cancelled.
TEST(AttemptCallsThreadsTest, EndOnce) {
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> ends = 0;
    const auto calls = std::make_shared<AttemptCalls>(
        [&ends](const absl::Status&) { ++ends; });
    const auto add = [&calls] {
      std::shared_ptr<FakeCall> call;
      EXPECT_TRUE(calls
                      ->Add([&call](CallDone done) {
                        call = std::make_shared<FakeCall>(
                            std::make_shared<DoneObserver>(std::move(done)));
                        return call;
                      })
                      .ok());
      return call;
    };
    const auto first = add();
    const auto second = add();
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      const auto third = add();
      first->End(absl::OkStatus());
      third->End(absl::OkStatus());
    });
    threads.emplace_back([&] { second->End(absl::UnavailableError("lost")); });
    threads.emplace_back([&] { calls->Cancel(); });
    calls->Close(absl::OkStatus());
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(ends, 1);
  }
}

}  // namespace
}  // namespace millrace
