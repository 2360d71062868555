// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/status_lines.h"

namespace millrace::cuda {
namespace {

// Whether there was enough memory.
bool Runs(DeviceGate& gate, absl::FunctionRef<bool()> attempt) {
  const absl::StatusOr<bool> enough = gate.Run(attempt);
  EXPECT_TRUE(enough.ok()) << enough.status();
  return enough.ok() && *enough;
}

TEST(DeviceGateTest, TriesOnceIfThereIsEnoughMemory) {
  DeviceGate gate(0);
  int attempts = 0;
  EXPECT_TRUE(Runs(gate, [&] {
    ++attempts;
    return true;
  }));
  EXPECT_EQ(attempts, 1);
}

TEST(DeviceGateTest, TriesAgainOnceEverybodyHasGivenMemoryBack) {
  const auto gate = std::make_shared<DeviceGate>(0);
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
  DeviceGate gate(0);
  int attempts = 0;
  EXPECT_FALSE(Runs(gate, [&] {
    ++attempts;
    return false;
  }));
  EXPECT_EQ(attempts, 2);
  EXPECT_TRUE(Runs(gate, [] { return true; })) << "the gate is open again";
}

TEST(DeviceGateTest, ForgetsThoseThatAreGone) {
  const auto gate = std::make_shared<DeviceGate>(0);
  int reclaimed = 0;
  {
    const DeviceGate::Reclaimer gone(gate, [&] { ++reclaimed; });
  }
  EXPECT_FALSE(Runs(*gate, [] { return false; }));
  EXPECT_EQ(reclaimed, 0);
}

// Work of which each piece needs all memory that the others leave: it fits only
// alone.
TEST(DeviceGateTest, WorkThatIsAloneHasNoOtherBesideIt) {
  DeviceGate gate(0);
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
  DeviceGate gate(3, absl::Milliseconds(20));
  Notification started, may_end;
  std::thread other([&] {
    EXPECT_TRUE(Runs(gate, [&] {
      started.Notify();
      may_end.WaitForNotification();
      return true;
    }));
  });
  started.WaitForNotification();
  int attempts = 0;
  const absl::StatusOr<bool> enough = gate.Run([&] {
    ++attempts;
    return false;
  });
  EXPECT_TRUE(absl::IsResourceExhausted(enough.status())) << enough.status();
  EXPECT_EQ(FirstLine(enough.status()),
            "CUDA device 3 has too little memory for more work, and its "
            "other work has not finished within 20ms");
  EXPECT_EQ(attempts, 1);
  may_end.Notify();
  other.join();
  EXPECT_TRUE(Runs(gate, [] { return true; }));
}

TEST(DeviceGateTest, DoesNotWaitForeverForWorkThatIsAlone) {
  DeviceGate gate(0, absl::Milliseconds(20));
  Notification started, may_end;
  std::thread other([&] {
    bool again = false;
    EXPECT_TRUE(Runs(gate, [&] {
      if (std::exchange(again, true)) {
        started.Notify();
        may_end.WaitForNotification();
        return true;
      }
      return false;
    }));
  });
  started.WaitForNotification();
  const absl::StatusOr<bool> enough = gate.Run([]() -> bool {
    ADD_FAILURE() << "began beside work that is alone";
    return true;
  });
  EXPECT_TRUE(absl::IsResourceExhausted(enough.status())) << enough.status();
  may_end.Notify();
  other.join();
  EXPECT_TRUE(Runs(gate, [] { return true; }));
}

TEST(DeviceGateTest, OpensAgainAfterAnException) {
  DeviceGate gate(0);
  for (const bool alone : {false, true}) {
    bool first = true;
    EXPECT_THROW(Runs(gate,
                      [&]() -> bool {
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
