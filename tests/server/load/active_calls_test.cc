// SPDX-License-Identifier: Apache-2.0
#include "server/load/active_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"
#include "server/load/refusal.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Context = ::grpc::CallbackServerContext;

constexpr absl::Duration kSoon = absl::Seconds(30);

TEST(ActiveCallsTest, EndsCallsAfterTheirDeadline) {
  Context expired, other;
  Notification ended;
  ActiveCalls calls(8, [&](Context* call, const absl::Status& why) {
    EXPECT_TRUE(why.ok());
    EXPECT_EQ(call, &expired);
    calls.Leave(call);
    ended.Notify();
  });
  ASSERT_TRUE(calls.Enter(&other, "client", SteadyTime::InfiniteFuture()).ok());
  ASSERT_TRUE(calls.Enter(&expired, "client", SteadyNow()).ok());
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(kSoon));
  calls.Leave(&other);
  EXPECT_EQ(calls.count(), 0);
}

TEST(ActiveCallsTest, EndsCallsOfStalledClients) {
  Context still, moved;
  Notification ended;
  ActiveCalls calls(8, [&](Context* call, const absl::Status& why) {
    EXPECT_TRUE(why.ok());
    EXPECT_EQ(call, &still);
    calls.Leave(call);
    ended.Notify();
  });
  for (Context* call : {&moved, &still}) {
    ASSERT_TRUE(calls.Enter(call, "client", SteadyTime::InfiniteFuture()).ok());
    calls.AwaitClient(call, SteadyNow());
  }
  calls.ClientMadeProgress(&moved);
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(kSoon));
  calls.Leave(&moved);
}

// Two calls are due. While one is being ended the other leaves, and a new call
// reuses its address.
TEST(ActiveCallsTest, SparesANewCallAtAReusedAddress) {
  std::array<Context, 2> contexts;
  Context last;
  int ends = 0;
  Notification done;
  ActiveCalls calls(8, [&](Context* call, const absl::Status& why) {
    EXPECT_TRUE(why.ok());
    if (call == &last) {
      calls.Leave(call);
      return done.Notify();
    }
    ++ends;
    Context* const other = call == &contexts[0] ? &contexts[1] : &contexts[0];
    for (Context* context : {call, other}) calls.Leave(context);
    EXPECT_TRUE(
        calls.Enter(other, "client", SteadyTime::InfiniteFuture()).ok());
    // This call is ended in a later round.
    EXPECT_TRUE(
        calls.Enter(&last, "client", SteadyNow() + absl::Seconds(1)).ok());
  });
  const SteadyTime due = SteadyNow() + absl::Milliseconds(500);
  for (Context& context : contexts) {
    ASSERT_TRUE(calls.Enter(&context, "client", due).ok());
  }
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(kSoon));
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(calls.count(), 1);
}

constexpr SteadyTime kNever = SteadyTime::InfiniteFuture();

// Ended calls whose clients do not leave give up their places but still count.
TEST(ActiveCallsTest, AllowsTwiceAsManyCallsAsPlaces) {
  ActiveCalls calls(4, [](Context*, const absl::Status&) {});
  std::vector<std::unique_ptr<Context>> contexts;
  const auto enter = [&](const std::string& client) {
    contexts.push_back(std::make_unique<Context>());
    return calls.Enter(contexts.back().get(), client, kNever);
  };
  const auto enter_two = [&](const std::string& client) {
    EXPECT_EQ(enter(client), absl::OkStatus());
    EXPECT_EQ(enter(client), absl::OkStatus());
  };
  enter_two("greedy");
  for (int round = 0; round < 2; ++round) {
    enter_two("greedy");
    enter_two("good");  // ends two of the others
    EXPECT_EQ(calls.count(), 6 + 2 * round);
    for (size_t i = contexts.size() - 2; i < contexts.size(); ++i) {
      calls.Leave(contexts[i].get());
    }
  }
  enter_two("greedy");
  EXPECT_EQ(calls.count(), 8);
  EXPECT_TRUE(absl::IsResourceExhausted(enter("good")));
  EXPECT_EQ(calls.ended_for_others(), 4u);
  for (const auto& context : contexts) calls.Leave(context.get());
  EXPECT_EQ(calls.count(), 0);
}

// Calls of several clients; those that are ended leave.
class Clients {
 public:
  explicit Clients(int max_calls)
      : calls_(max_calls, [this](Context* call, const absl::Status& why) {
          EXPECT_TRUE(absl::IsResourceExhausted(why)) << why;
          EXPECT_TRUE(IsRetryable(why)) << why;
          calls_.Leave(call);
          MutexLock lock(&mutex_);
          ended_.push_back(call);
          changed_.NotifyAll();
        }) {}
  ~Clients() {
    for (const auto& context : contexts_) calls_.Leave(context.get());
  }

  // Returns null if the call is refused.
  Context* Enter(const std::string& client) {
    contexts_.push_back(std::make_unique<Context>());
    Context* const context = contexts_.back().get();
    status_ = calls_.Enter(context, client, kNever);
    return status_.ok() ? context : nullptr;
  }
  ActiveCalls& calls() { return calls_; }
  const absl::Status& status() const { return status_; }

  // Waits for the first `count` calls that are ended, and returns them.
  std::vector<Context*> AwaitEnded(size_t count) {
    MutexLock lock(&mutex_);
    const auto enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return ended_.size() >= count;
    };
    EXPECT_TRUE(changed_.WaitFor(&mutex_, kSoon, enough));
    return ended_;
  }

 private:
  std::vector<std::unique_ptr<Context>> contexts_;
  absl::Status status_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<Context*> ended_ ABSL_GUARDED_BY(mutex_);
  ActiveCalls calls_;  // last: calls back
};

TEST(ActiveCallsTest, EndsTheCallThatWaitedLongestForAClientBelowItsShare) {
  Clients clients(4);
  std::vector<Context*> greedy;
  for (int i = 0; i < 4; ++i) greedy.push_back(clients.Enter("greedy"));
  for (const int i : {2, 1, 3}) clients.calls().AwaitClient(greedy[i], kNever);
  clients.calls().ClientMadeProgress(greedy[2]);
  ASSERT_NE(clients.Enter("good"), nullptr);
  EXPECT_THAT(clients.AwaitEnded(1), ElementsAre(greedy[1]));
  ASSERT_NE(clients.Enter("good"), nullptr);
  EXPECT_THAT(clients.AwaitEnded(2), ElementsAre(greedy[1], greedy[3]));
}

TEST(ActiveCallsTest, EndsTheNewestCallIfNoneWaits) {
  Clients clients(3);
  std::vector<Context*> greedy;
  for (int i = 0; i < 3; ++i) greedy.push_back(clients.Enter("greedy"));
  ASSERT_NE(clients.Enter("good"), nullptr);
  EXPECT_THAT(clients.AwaitEnded(1), ElementsAre(greedy[2]));
}

TEST(ActiveCallsTest, RefusesWhatIsBeyondAFairShare) {
  Clients clients(4);
  for (int i = 0; i < 4; ++i) ASSERT_NE(clients.Enter("greedy"), nullptr);
  EXPECT_EQ(clients.Enter("greedy"), nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(clients.status()));
  EXPECT_THAT(std::string(clients.status().message()),
              HasSubstr("4 of at most 4 calls are running, 4 of them this "
                        "client's, whose fair share is 4"));
  ASSERT_NE(clients.Enter("good"), nullptr);
  ASSERT_NE(clients.Enter("good"), nullptr);
  EXPECT_EQ(clients.Enter("good"), nullptr);
  EXPECT_EQ(clients.Enter("greedy"), nullptr);
  EXPECT_TRUE(clients.calls().CheckRoom("another").ok());
}

TEST(ActiveCallsTest, EndsACallOnlyOnce) {
  Clients clients(2);
  Context* const call = clients.Enter("greedy");
  clients.calls().EndForOthers(call);
  EXPECT_THAT(clients.AwaitEnded(1), ElementsAre(call));
  clients.calls().EndForOthers(call);
  EXPECT_EQ(clients.calls().count(), 0);
  ASSERT_NE(clients.Enter("greedy"), nullptr);
  ASSERT_NE(clients.Enter("greedy"), nullptr);
}

// No call is ended twice, although the calls take a long time to leave.
TEST(ActiveCallsTest, EndsEachCallOnce) {
  std::array<Context, 3> contexts;
  Mutex mutex;
  CondVar changed;
  std::vector<Context*> ended;
  ActiveCalls calls(4, [&](Context* call, const absl::Status&) {
    MutexLock lock(&mutex);
    ended.push_back(call);
    changed.NotifyAll();
  });
  for (Context& context : contexts) {
    ASSERT_TRUE(calls.Enter(&context, "client", kNever).ok());
  }
  for (size_t i = 0; i < contexts.size(); ++i) {
    calls.EndForOthers(&contexts[i]);
    MutexLock lock(&mutex);
    EXPECT_TRUE(
        changed.WaitFor(&mutex, kSoon, [&] { return ended.size() == i + 1; }));
    EXPECT_EQ(ended.back(), &contexts[i]);
  }
  EXPECT_EQ(calls.ended_for_others(), 3u);
  for (Context& context : contexts) calls.Leave(&context);
}

TEST(ActiveCallsTest, RefusesMoreClientsThanPlaces) {
  Clients clients(2);
  ASSERT_NE(clients.Enter("a"), nullptr);
  ASSERT_NE(clients.Enter("b"), nullptr);
  EXPECT_EQ(clients.Enter("c"), nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(clients.status()));
  EXPECT_TRUE(IsRetryable(clients.status()));
  EXPECT_EQ(clients.calls().count(), 2);
}

// Calls that are being ended may take a long time to leave.
TEST(ActiveCallsTest, HoldsTwiceAsManyCallsAtMostWhileSomeEnd) {
  std::vector<std::unique_ptr<Context>> contexts;
  ActiveCalls calls(4, [](Context*, const absl::Status&) {});
  for (int i = 0; i < 100; ++i) {
    contexts.push_back(std::make_unique<Context>());
    (void)calls.Enter(contexts.back().get(), StrCat("client ", i % 9), kNever);
    EXPECT_LE(calls.count(), 8);
  }
  EXPECT_GE(calls.count(), 4);
  for (const auto& context : contexts) calls.Leave(context.get());
}

TEST(ActiveCallsTest, RefusesAllCallsOnceItDrains) {
  Clients clients(2);
  ASSERT_NE(clients.Enter("first"), nullptr);
  EXPECT_FALSE(clients.calls().draining());
  clients.calls().StartDraining();
  EXPECT_TRUE(clients.calls().draining());
  EXPECT_EQ(clients.Enter("second"), nullptr);
  const absl::Status draining = WithRefusal(
      absl::UnavailableError("the server is draining\nask another replica, or "
                             "wait for it to come back"),
      RefusalReason::kDraining);
  EXPECT_EQ(clients.status(), draining);
  EXPECT_EQ(clients.calls().CheckRoom("first"), draining);
  EXPECT_FALSE(clients.calls().AwaitNone(SteadyTime::InfinitePast()));
}

}  // namespace
}  // namespace millrace
