// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/pool_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/thread_pool.h"

namespace millrace {
namespace {

// A pool of one thread, which is busy until Release().
class BusyPool {
 public:
  BusyPool() : pool_("test", 1, 4) {
    EXPECT_TRUE(pool_.TrySubmit([this] {
      busy_.Notify();
      release_.WaitForNotification();
    }));
    busy_.WaitForNotification();
  }
  ~BusyPool() {
    if (!release_.HasBeenNotified()) release_.Notify();
  }

  void Release() {
    release_.Notify();
    pool_.Close();
  }
  ThreadPool& pool() { return pool_; }

 private:
  Notification busy_, release_;
  ThreadPool pool_;
};

TEST(PoolTaskTest, RunsItsTasksOneAfterAnother) {
  ThreadPool pool("test", 2, 4);
  PoolTask task("client");
  Notification first, second;
  ASSERT_TRUE(task.Submit(pool, [&] { first.Notify(); }).ok());
  first.WaitForNotification();
  ASSERT_TRUE(task.Submit(pool, [&] { second.Notify(); }).ok());
  second.WaitForNotification();
}

TEST(PoolTaskTest, CancelRemovesATaskThatWaits) {
  BusyPool busy;
  PoolTask task("client");
  bool ran = false;
  ASSERT_TRUE(task.Submit(busy.pool(), [&] { ran = true; }).ok());
  EXPECT_TRUE(absl::IsCancelled(task.Cancel()));
  EXPECT_TRUE(task.Cancel().ok());
  busy.Release();
  EXPECT_FALSE(ran);
}

TEST(PoolTaskTest, CancelDoesNotAffectARunningTask) {
  ThreadPool pool("test", 1, 4);
  PoolTask task("client");
  Notification begun, cancelled, ended;
  ASSERT_TRUE(task.Submit(pool,
                          [&] {
                            begun.Notify();
                            cancelled.WaitForNotification();
                            ended.Notify();
                          })
                  .ok());
  begun.WaitForNotification();
  EXPECT_TRUE(task.Cancel().ok());
  cancelled.Notify();
  ended.WaitForNotification();
}

TEST(PoolTaskTest, RefusesTasksOnceCancelled) {
  ThreadPool pool("test", 1, 4);
  PoolTask task("client");
  EXPECT_TRUE(task.Cancel().ok());
  bool ran = false;
  EXPECT_TRUE(absl::IsCancelled(task.Submit(pool, [&] { ran = true; })));
  pool.Close();
  EXPECT_FALSE(ran);
}

TEST(PoolTaskTest, RefusesTasksForAClosedPool) {
  ThreadPool pool("test", 1, 4);
  pool.Close();
  PoolTask task("client");
  bool ran = false;
  EXPECT_TRUE(absl::IsUnavailable(task.Submit(pool, [&] { ran = true; })));
  EXPECT_FALSE(ran);
}

TEST(PoolTaskTest, ATaskMayDestroyItsOwner) {
  ThreadPool pool("test", 2, 64);
  std::atomic<int> destroyed = 0;
  for (int i = 0; i < 200; ++i) {
    Notification done;
    auto* const task = new PoolTask("client");
    ASSERT_TRUE(task->Submit(pool,
                             [&, task] {
                               delete task;
                               ++destroyed;
                               done.Notify();
                             })
                    .ok());
    done.WaitForNotification();
  }
  EXPECT_EQ(destroyed, 200);
}

TEST(PoolTaskTest, EveryTaskRunsOrIsRemoved) {
  ThreadPool pool("test", 2, 64);
  for (int i = 0; i < 200; ++i) {
    PoolTask task("client");
    Notification ran;
    absl::Status cancelled;
    std::thread canceller([&] { cancelled = task.Cancel(); });
    const absl::Status submitted = task.Submit(pool, [&ran] { ran.Notify(); });
    canceller.join();
    if (submitted.ok() && cancelled.ok()) {
      ran.WaitForNotification();
    } else {
      EXPECT_FALSE(ran.HasBeenNotified());
    }
  }
}

}  // namespace
}  // namespace millrace
