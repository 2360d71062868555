// SPDX-License-Identifier: Apache-2.0
#include "server/live_calls.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {
namespace {

using Context = ::grpc::CallbackServerContext;

constexpr absl::Duration kSoon = absl::Seconds(30);

TEST(LiveCallsTest, EndsCallsWhoseTimeIsOver) {
  Context expired, other;
  Notification ended;
  LiveCalls calls(8, [&](Context* call) {
    EXPECT_EQ(call, &expired);
    calls.Leave(call);
    ended.Notify();
  });
  ASSERT_TRUE(calls.Enter(&other, SteadyTime::InfiniteFuture()).ok());
  ASSERT_TRUE(calls.Enter(&expired, SteadyNow()).ok());
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(kSoon));
  calls.Leave(&other);
  EXPECT_EQ(calls.count(), 0);
}

TEST(LiveCallsTest, EndsCallsWhoseClientDoesNotMove) {
  Context still, moved;
  Notification ended;
  LiveCalls calls(8, [&](Context* call) {
    EXPECT_EQ(call, &still);
    calls.Leave(call);
    ended.Notify();
  });
  for (Context* call : {&moved, &still}) {
    ASSERT_TRUE(calls.Enter(call, SteadyTime::InfiniteFuture()).ok());
    calls.AwaitClient(call, SteadyNow());
  }
  calls.ClientMoved(&moved);
  EXPECT_TRUE(ended.WaitForNotificationWithTimeout(kSoon));
  calls.Leave(&moved);
}

// Of two calls that are due, one leaves while the other is ended, and a new
// one takes its address.
TEST(LiveCallsTest, SparesTheNewCallOfAnOldAddress) {
  std::array<Context, 2> contexts;
  Context last;
  int ends = 0;
  Notification done;
  LiveCalls calls(8, [&](Context* call) {
    if (call == &last) {
      calls.Leave(call);
      return done.Notify();
    }
    ++ends;
    Context* const other = call == &contexts[0] ? &contexts[1] : &contexts[0];
    for (Context* context : {call, other}) calls.Leave(context);
    EXPECT_TRUE(calls.Enter(other, SteadyTime::InfiniteFuture()).ok());
    // Ended in a later round.
    EXPECT_TRUE(calls.Enter(&last, SteadyNow() + absl::Seconds(1)).ok());
  });
  const SteadyTime due = SteadyNow() + absl::Milliseconds(500);
  for (Context& context : contexts) {
    ASSERT_TRUE(calls.Enter(&context, due).ok());
  }
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(kSoon));
  EXPECT_EQ(ends, 1);
  EXPECT_EQ(calls.count(), 1);
}

}  // namespace
}  // namespace millrace
