// SPDX-License-Identifier: Apache-2.0
#include "client/remote/call_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace millrace {
namespace {

// A call that ends when the test says so, or when it is cancelled.
class EndableCall final : public Call {
 public:
  explicit EndableCall(CallDone done) : done_(std::move(done)) {}
  void Cancel() override { End(absl::CancelledError("by us")); }
  void End(const absl::Status& status) {
    if (CallDone done = std::exchange(done_, nullptr)) done(status);
  }

 private:
  CallDone done_;
};

class CallGroupTest : public ::testing::Test {
 protected:
  // Adds a call that ends at once.
  static void AddEnded(CallGroup& group, const absl::Status& status) {
    group.Add([&](const CallDone& done) {
      done(status);
      return absl::StatusOr<std::shared_ptr<Call>>(
          std::make_shared<EndableCall>(nullptr));
    });
  }

  Notification closing_;
};

TEST_F(CallGroupTest, OnlyAFewCallsRunAtATime) {
  constexpr size_t kCalls = 5 * CallGroup::kMaxRunning;
  CallGroup group(closing_);
  Mutex mutex;
  CondVar call_started;
  std::vector<std::shared_ptr<EndableCall>> running;
  size_t started = 0;
  size_t most = 0;
  std::thread adder([&] {
    for (size_t i = 0; i < kCalls; ++i) {
      group.Add([&](CallDone done) -> absl::StatusOr<std::shared_ptr<Call>> {
        MutexLock lock(&mutex);
        running.push_back(std::make_shared<EndableCall>(std::move(done)));
        most = std::max(most, running.size());
        ++started;
        call_started.NotifyAll();
        return running.back();
      });
    }
    EXPECT_TRUE(group.Wait().ok());
  });
  // Ends a call only while the maximum number are running.
  for (size_t ended = 0; ended < kCalls; ++ended) {
    std::shared_ptr<EndableCall> oldest;
    {
      MutexLock lock(&mutex);
      const auto full = [&] {
        return started == kCalls || running.size() == CallGroup::kMaxRunning;
      };
      call_started.Wait(&mutex, full);
      oldest = running.front();
      running.erase(running.begin());
    }
    oldest->End(absl::OkStatus());
  }
  adder.join();
  EXPECT_EQ(most, CallGroup::kMaxRunning);
}

// A call may hold a lot of memory.
TEST_F(CallGroupTest, ReleasesFinishedCalls) {
  CallGroup group(closing_);
  std::weak_ptr<EndableCall> first;
  group.Add([&](CallDone done) {
    const auto call = std::make_shared<EndableCall>(std::move(done));
    first = call;
    return absl::StatusOr<std::shared_ptr<Call>>(call);
  });
  ASSERT_FALSE(first.expired());
  first.lock()->End(absl::OkStatus());
  AddEnded(group, absl::OkStatus());
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(group.Wait(), absl::OkStatus());
}

TEST_F(CallGroupTest, ReportsTheFirstFailureUnlessALaterOneIsFinal) {
  CallGroup retryable(closing_);
  AddEnded(retryable, absl::UnavailableError("the first"));
  AddEnded(retryable, absl::UnavailableError("the second"));
  EXPECT_EQ(retryable.Wait(), absl::UnavailableError("the first"));
  CallGroup final(closing_);
  final.Add([](const CallDone&) { return absl::NotFoundError("gone"); });
  final.Add([](const CallDone&) -> absl::StatusOr<std::shared_ptr<Call>> {
    ADD_FAILURE() << "started";
    return absl::InternalError("");
  });
  EXPECT_EQ(final.Wait(), absl::NotFoundError("gone"));
  EXPECT_FALSE(final.succeeded(0));
}

TEST_F(CallGroupTest, SaysWhichCallsSucceeded) {
  CallGroup group(closing_);
  AddEnded(group, absl::OkStatus());
  AddEnded(group, absl::UnavailableError("the first"));
  AddEnded(group, absl::OkStatus());
  group.Add([](const CallDone&) { return absl::UnavailableError("no owner"); });
  EXPECT_EQ(group.Wait(), absl::UnavailableError("the first"));
  EXPECT_TRUE(group.succeeded(0));
  EXPECT_FALSE(group.succeeded(1));
  EXPECT_TRUE(group.succeeded(2));
  EXPECT_FALSE(group.succeeded(3));
}

TEST_F(CallGroupTest, AFinalFailureIsReportedAndStopsFurtherCalls) {
  CallGroup group(closing_);
  AddEnded(group, absl::UnavailableError("later perhaps"));
  AddEnded(group, absl::DataLossError("never"));
  group.Add([](const CallDone&) -> absl::StatusOr<std::shared_ptr<Call>> {
    ADD_FAILURE() << "started";
    return absl::InternalError("");
  });
  EXPECT_EQ(group.Wait(), absl::DataLossError("never"));
  EXPECT_FALSE(group.succeeded(2));
}

TEST_F(CallGroupTest, CloseCancelsRunningCallsAndStartsNoMore) {
  CallGroup group(closing_);
  int started = 0;
  const auto start = [&](CallDone done) {
    ++started;
    return absl::StatusOr<std::shared_ptr<Call>>(
        std::make_shared<EndableCall>(std::move(done)));
  };
  group.Add(start);
  closing_.Notify();
  group.Add(start);
  EXPECT_EQ(group.Wait(), absl::CancelledError("the calls were cancelled"));
  EXPECT_EQ(started, 1);
  EXPECT_FALSE(group.succeeded(0));
}

}  // namespace
}  // namespace millrace
