// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/mutex.h"

namespace millrace::cuda {
namespace {

bool Runs(DeviceGate& gate, absl::FunctionRef<bool()> attempt) {
  return gate.Run(attempt) == DeviceGate::Outcome::kDone;
}

TEST(DeviceGateTest, TriesOnceIfThereIsEnoughMemory) {
  DeviceGate gate;
  int attempts = 0;
  EXPECT_TRUE(Runs(gate, [&] {
    ++attempts;
    return true;
  }));
  EXPECT_EQ(attempts, 1);
}

TEST(DeviceGateTest, TriesAgainOnceEverybodyHasGivenMemoryBack) {
  const auto gate = std::make_shared<DeviceGate>();
  bool free = false;
  const DeviceGate::Reclaimer reclaimer(gate, [&] { free = true; });
  int attempts = 0;
  EXPECT_TRUE(Runs(*gate, [&] {
    ++attempts;
    return free;
  }));
  EXPECT_EQ(attempts, 2);
}

TEST(DeviceGateTest, GivesUpWorkThatDoesNotFitAlone) {
  DeviceGate gate;
  int attempts = 0;
  const DeviceGate::Outcome outcome = gate.Run([&] {
    ++attempts;
    return false;
  });
  EXPECT_EQ(outcome, DeviceGate::Outcome::kNoMemory);
  EXPECT_EQ(attempts, 2);
  EXPECT_TRUE(Runs(gate, [] { return true; })) << "the gate is open again";
}

TEST(DeviceGateTest, ForgetsThoseThatAreGone) {
  const auto gate = std::make_shared<DeviceGate>();
  int reclaimed = 0;
  {
    const DeviceGate::Reclaimer gone(gate, [&] { ++reclaimed; });
  }
  gate->Run([] { return false; });
  EXPECT_EQ(reclaimed, 0);
}

// Work of which each piece needs all memory that the others leave: it fits only
// alone.
TEST(DeviceGateTest, WorkThatIsAloneHasNoOtherBesideIt) {
  DeviceGate gate;
  std::atomic<int> running = 0, alone = 0, beside = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        bool again = false;
        EXPECT_TRUE(Runs(gate, [&] {
          const int others = running++;
          if (again) {
            ++alone;
            beside += others;
          }
          std::this_thread::yield();
          --running;
          const bool enough = again;
          again = true;
          return enough;
        }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, 200);
  EXPECT_EQ(beside, 0);
}

TEST(DeviceGateTest, DoesNotWaitForeverForOtherWork) {
  DeviceGate gate(absl::Milliseconds(20));
  Notification started, may_end;
  std::thread other([&] {
    gate.Run([&] {
      started.Notify();
      may_end.WaitForNotification();
      return true;
    });
  });
  started.WaitForNotification();
  int attempts = 0;
  const DeviceGate::Outcome outcome = gate.Run([&] {
    ++attempts;
    return false;
  });
  EXPECT_EQ(outcome, DeviceGate::Outcome::kBusy);
  EXPECT_EQ(attempts, 1);
  may_end.Notify();
  other.join();
  EXPECT_TRUE(Runs(gate, [] { return true; }));
}

TEST(DeviceGateTest, OpensAgainAfterAnException) {
  DeviceGate gate;
  for (const bool alone : {false, true}) {
    bool first = true;
    EXPECT_THROW(gate.Run([&]() -> bool {
      if (alone && first) {
        first = false;
        return false;
      }
      throw std::runtime_error("out of memory");
    }),
                 std::runtime_error);
    EXPECT_FALSE(Runs(gate, [] { return false; })) << "can still be alone";
  }
}

TEST(DeviceGateTest, EachDeviceHasOne) {
  EXPECT_EQ(DeviceGate::Of(0), DeviceGate::Of(0));
  EXPECT_NE(DeviceGate::Of(0), DeviceGate::Of(1));
}

}  // namespace
}  // namespace millrace::cuda
