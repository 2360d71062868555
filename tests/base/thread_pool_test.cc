// SPDX-License-Identifier: Apache-2.0
#include "common/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"

namespace millrace {
namespace {

TEST(ThreadPool, RunsEveryAcceptedTask) {
  std::atomic<int> sum{0};
  {
    ThreadPool pool("test", 4, 1000);
    EXPECT_EQ(pool.threads(), 4);
    for (int i = 1; i <= 1000; ++i) {
      ASSERT_TRUE(pool.TrySubmit([&sum, i] { sum += i; }));
    }
  }
  EXPECT_EQ(sum, 500'500);
}

TEST(ThreadPool, RunsTasksAtTheSameTime) {
  ThreadPool pool("test", 3, 0);
  std::latch met(3), done(3);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(pool.TrySubmit([&met, &done] {
      met.arrive_and_wait();
      done.count_down();
    }));
  }
  done.wait();
}

TEST(ThreadPool, RefusesWhenFull) {
  Notification go;
  std::atomic<int> ran{0};
  ThreadPool pool("test", 2, 3);
  // Two tasks run and three wait, whether or not the threads have taken theirs
  // yet.
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(pool.TrySubmit([&go, &ran] {
      go.WaitForNotification();
      ++ran;
    }));
  }
  EXPECT_FALSE(pool.TrySubmit([&ran] { ++ran; }));
  go.Notify();
  pool.Close();
  EXPECT_EQ(ran, 5);
}

TEST(ThreadPool, RemovedTasksDoNotRunAndTakeNoRoom) {
  Notification go;
  std::atomic<int> ran{0};
  ThreadPool pool("test", 1, 1);
  ASSERT_TRUE(pool.TrySubmit([&go] { go.WaitForNotification(); }));
  const int owner = 0;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pool.TrySubmit([&ran] { ++ran; }, "client", &owner));
    ASSERT_TRUE(pool.Remove(&owner));
    ASSERT_FALSE(pool.Remove(&owner));
  }
  go.Notify();
  pool.Close();
  EXPECT_EQ(ran, 0);
}

TEST(ThreadPool, CloseDrainsAndRefuses) {
  Notification go;
  std::atomic<int> ran{0};
  ThreadPool pool("test", 1, 10);
  ASSERT_TRUE(pool.TrySubmit([&go] { go.WaitForNotification(); }));
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(pool.TrySubmit([&ran] { ++ran; }));
  }
  go.Notify();
  pool.Close();
  pool.Close();
  EXPECT_EQ(ran, 10);
  EXPECT_FALSE(pool.TrySubmit([&ran] { ++ran; }));
}

TEST(ThreadPool, KeepsOrderWithOneThread) {
  std::vector<int> order;
  {
    ThreadPool pool("a-name-longer-than-fifteen", 1, 100);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(pool.TrySubmit([&order, i] { order.push_back(i); }));
    }
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(ThreadPool, LetsManyThreadsSubmitAndClose) {
  std::atomic<int> accepted{0};
  std::atomic<int> ran{0};
  ThreadPool pool("test", 2, 8);
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user) {
    users.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        if (pool.TrySubmit([&ran] { ++ran; })) ++accepted;
      }
      pool.Close();
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(ran, accepted);
}

// Two of three threads are busy from one point to another of the test, which
// measures the time itself.
TEST(ThreadPool, CountsBusySecondsOfThreads) {
  const SteadyTime made = SteadyNow();
  ThreadPool pool("test", 3, 10);
  const SteadyTime idle = SteadyNow();
  EXPECT_EQ(pool.load().busy_ratio, 0);
  std::latch begun(2);
  Notification go;
  const SteadyTime before = SteadyNow();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pool.TrySubmit([&] {
      begun.count_down();
      go.WaitForNotification();
    }));
  }
  begun.wait();
  const SteadyTime both = SteadyNow();
  while (SteadyNow() < both + absl::Milliseconds(50)) std::this_thread::yield();
  const SteadyTime asked = SteadyNow();
  // Tasks count while they run.
  const ThreadPool::Load load = pool.load();
  const SteadyTime answered = SteadyNow();
  EXPECT_EQ(load.running, 2u);
  EXPECT_EQ(load.waiting, 0u);
  const double least = 2 * absl::ToDoubleSeconds(asked - both);
  const double most = 2 * absl::ToDoubleSeconds(answered - before);
  EXPECT_GE(load.busy_seconds, least - 1e-6);
  EXPECT_LE(load.busy_seconds, most + 1e-6);
  EXPECT_GE(load.busy_ratio,
            least / 3 / absl::ToDoubleSeconds(answered - made) - 1e-6);
  EXPECT_LE(load.busy_ratio,
            most / 3 / absl::ToDoubleSeconds(asked - idle) + 1e-6);
  go.Notify();
  pool.Close();
  const double end = pool.load().busy_seconds;
  EXPECT_GE(end, load.busy_seconds);
  EXPECT_EQ(pool.load().busy_seconds, end);
}

TEST(ThreadPool, CountsWaitingTasks) {
  ThreadPool pool("test", 1, 10);
  Notification go, begun;
  ASSERT_TRUE(pool.TrySubmit([&] {
    begun.Notify();
    go.WaitForNotification();
  }));
  begun.WaitForNotification();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.TrySubmit([] {}));
  EXPECT_EQ(pool.load().waiting, 4u);
  EXPECT_EQ(pool.load().running, 1u);
  go.Notify();
  pool.Close();
  EXPECT_EQ(pool.load().waiting, 0u);
}

}  // namespace
}  // namespace millrace
