// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/call_timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "tests/support/eventually.h"

namespace millrace {
namespace {

// Far longer than a loaded machine needs.
constexpr absl::Duration kPatience = absl::Seconds(20);

class Note final : public Sleeper {
 public:
  void OnWake() override {
    time_ = SteadyNow();
    woken_.Notify();  // fails if it is called twice
  }
  bool Wait(absl::Duration patience = kPatience) {
    return woken_.WaitForNotificationWithTimeout(patience);
  }
  SteadyTime time() const { return time_; }

 private:
  SteadyTime time_;
  Notification woken_;
};

TEST(CallTimerTest, WakesEachOnceAndNotTooEarly) {
  CallTimer timer;
  std::mt19937 random(7);
  std::vector<std::pair<SteadyTime, std::shared_ptr<Note>>> notes;
  for (int i = 0; i < 500; ++i) {
    const absl::Duration wait = absl::Microseconds(random() % 300'000);
    notes.emplace_back(SteadyNow() + wait, std::make_shared<Note>());
    timer.Add(wait, notes.back().second);
  }
  for (const auto& [when, note] : notes) {
    ASSERT_TRUE(note->Wait());
    EXPECT_GE(note->time(), when);
  }
}

// A call that is added later may be due earlier.
TEST(CallTimerTest, AnEarlierWakeUpDoesNotWaitForALaterOne) {
  CallTimer timer;
  auto late = std::make_shared<Note>(), soon = std::make_shared<Note>();
  timer.Add(absl::Hours(1), late);
  timer.Add(absl::Milliseconds(20), soon);
  EXPECT_TRUE(soon->Wait());
  EXPECT_FALSE(late->Wait(absl::ZeroDuration()));
}

TEST(CallTimerTest, RemovedSleepersAreNotWoken) {
  CallTimer timer;
  auto gone = std::make_shared<Note>(), other = std::make_shared<Note>();
  const CallTimer::Ticket ticket = timer.Add(absl::Milliseconds(50), gone);
  timer.Add(absl::Milliseconds(100), other);
  EXPECT_TRUE(timer.Remove(ticket));
  EXPECT_FALSE(timer.Remove(ticket));
  EXPECT_EQ(gone.use_count(), 1);
  EXPECT_TRUE(other->Wait());
  EXPECT_FALSE(gone->Wait(absl::ZeroDuration()));
}

TEST(CallTimerTest, ASleeperMayAddAnother) {
  class Again final : public Sleeper {
   public:
    Again(CallTimer& timer, std::shared_ptr<Note> next)
        : timer_(timer), next_(std::move(next)) {}
    void OnWake() override { timer_.Add(absl::Milliseconds(1), next_); }

   private:
    CallTimer& timer_;
    const std::shared_ptr<Note> next_;
  };
  CallTimer timer;
  auto last = std::make_shared<Note>();
  timer.Add(absl::ZeroDuration(), std::make_shared<Again>(timer, last));
  EXPECT_TRUE(last->Wait());
}

TEST(CallTimerTest, ReleasesSleepersWhenItEnds) {
  auto note = std::make_shared<Note>();
  std::optional<CallTimer> timer(std::in_place);
  timer->Add(absl::Milliseconds(30), note);
  timer.reset();
  EXPECT_EQ(note.use_count(), 1);
  EXPECT_FALSE(note->Wait(absl::Milliseconds(100)));
}

TEST(CallTimerTest, UsesNoCpuWhileItWaits) {
  CallTimer timer;
  const auto soon = std::make_shared<Note>();
  const CallTimer::Ticket removed =
      timer.Add(absl::ZeroDuration(), std::make_shared<Note>());
  timer.Remove(removed);
  timer.Add(absl::Hours(1), std::make_shared<Note>());
  timer.Add(absl::Milliseconds(500), soon);
  const SteadyTime start = SteadyNow();
  const std::clock_t start_cpu = std::clock();
  EXPECT_TRUE(soon->Wait());
  const double cpu = static_cast<double>(std::clock() - start_cpu);
  EXPECT_LT(cpu / CLOCKS_PER_SEC,
            absl::ToDoubleSeconds(SteadyNow() - start) / 20);
}

// Each sleeper is either removed or woken, on any thread.
TEST(CallTimerTest, ManyThreadsAddAndRemove) {
  class Count final : public Sleeper {
   public:
    explicit Count(std::atomic<int>& count) : count_(count) {}
    void OnWake() override { ++count_; }

   private:
    std::atomic<int>& count_;
  };
  constexpr int kThreads = 4, kEach = 5000;
  std::atomic<int> woken = 0, removed = 0;
  CallTimer timer;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<CallTimer::Ticket> tickets;
      for (int i = 0; i < kEach; ++i) {
        const auto wait = absl::Microseconds(static_cast<int>(random() % 9000));
        tickets.push_back(timer.Add(wait, std::make_shared<Count>(woken)));
        if (i >= 10) removed += timer.Remove(tickets[i - 10]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(
      testing::Eventually([&] { return woken + removed >= kThreads * kEach; }));
  EXPECT_EQ(woken + removed, kThreads * kEach);
  EXPECT_GT(removed, 0);
}

}  // namespace
}  // namespace millrace
