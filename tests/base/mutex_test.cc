// SPDX-License-Identifier: Apache-2.0
#include "common/base/mutex.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace millrace {
namespace {

constexpr absl::Duration kLong = absl::Hours(1);

TEST(MutexTest, OneThreadAtATimeHoldsIt) {
  Mutex mutex;
  int count = 0;  // watched by ThreadSanitizer
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

class CondVarTest : public ::testing::Test {
 protected:
  // A thread that makes the condition true.
  std::thread Setter() {
    return std::thread([this] {
      MutexLock lock(&mutex_);
      set_ = true;
      changed_.NotifyAll();
    });
  }

  Mutex mutex_;
  CondVar changed_;
  bool set_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(CondVarTest, WaitsEndWhenTheConditionIsTrue) {
  for (const absl::Duration timeout : {kLong, absl::InfiniteDuration()}) {
    std::thread setter;
    {
      MutexLock lock(&mutex_);
      set_ = false;
      setter = Setter();
      const auto set = [this]()
                           ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return set_; };
      EXPECT_TRUE(changed_.WaitFor(&mutex_, timeout, set));
      EXPECT_TRUE(changed_.WaitUntil(&mutex_, SteadyTime::InfinitePast(), set));
      changed_.Wait(&mutex_, set);
    }
    setter.join();
  }
}

TEST_F(CondVarTest, TimedWaitsEndWithoutIt) {
  MutexLock lock(&mutex_);
  const auto set = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return set_; };
  const SteadyTime start = SteadyNow();
  EXPECT_FALSE(changed_.WaitFor(&mutex_, absl::Milliseconds(20), set));
  EXPECT_GE(SteadyNow() - start, absl::Milliseconds(20));
  EXPECT_FALSE(changed_.WaitFor(&mutex_, -kLong, set));
  EXPECT_FALSE(changed_.WaitUntil(&mutex_, SteadyTime::InfinitePast(), set));
}

TEST(NotificationTest, HappensOnceForAll) {
  Notification happened;
  EXPECT_FALSE(happened.HasBeenNotified());
  EXPECT_FALSE(happened.WaitForNotificationWithTimeout(absl::Milliseconds(1)));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      happened.WaitForNotification();
      EXPECT_TRUE(happened.HasBeenNotified());
    });
  }
  happened.Notify();
  EXPECT_TRUE(happened.WaitForNotificationWithTimeout(kLong));
  for (std::thread& thread : threads) thread.join();
  EXPECT_DEATH(happened.Notify(), "notified");
}

// A notification may be on the stack of a thread that waits for another thread
// to call Notify(). The sanitizers judge whether Notify() still used it.
TEST(NotificationTest, WaiterMayDestroyIt) {
  for (int i = 0; i < 1000; ++i) {
    auto happened = std::make_unique<Notification>();
    std::thread notifier([raw = happened.get()] { raw->Notify(); });
    happened->WaitForNotification();
    EXPECT_TRUE(happened->HasBeenNotified());
    happened.reset();
    notifier.join();
  }
}

}  // namespace
}  // namespace millrace
