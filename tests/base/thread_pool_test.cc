// SPDX-License-Identifier: Apache-2.0
#include "common/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <vector>

#include "common/base/mutex.h"

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

}  // namespace
}  // namespace millrace
