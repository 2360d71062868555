// SPDX-License-Identifier: Apache-2.0
#include "client/train/device/host_reducer.h"

#include <ATen/ATen.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "tests/support/pretend_device.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using NoOpGuard = c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::PrivateUse1>;

// Streams and events of the pretend device, where work that rank 0 records does
// not end until it is awaited or released. Rank 0 has a stream of its own, by
// which it is known.
class LateGuard final : public NoOpGuard {
 public:
  static constexpr c10::StreamId kLateStream = 1;

  LateGuard() : before_(Registered().exchange(this)) {}
  ~LateGuard() { Registered() = before_; }

  void Release() { released_ = true; }
  int waits() const { return waits_; }
  int blocks() const { return blocks_; }

  static void BeLate() { stream = kLateStream; }

  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return PretendDevice(); }
  c10::Device exchangeDevice(c10::Device) const override {
    return PretendDevice();
  }
  c10::Stream getStream(c10::Device device) const noexcept override {
    return c10::Stream(c10::Stream::UNSAFE, device, stream);
  }
  void record(void** event, const c10::Stream& where, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    *event = reinterpret_cast<void*>(where.id());
  }
  void block(void*, const c10::Stream&) const override { ++blocks_; }
  bool queryEvent(void* event) const override {
    return !IsLate(event) || released_;
  }
  void synchronizeEvent(void* event) const override {
    if (IsLate(event)) ++waits_;
  }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}

 private:
  static std::atomic<const c10::impl::DeviceGuardImplInterface*>& Registered() {
    return c10::impl::device_guard_impl_registry[static_cast<size_t>(
        c10::DeviceType::PrivateUse1)];
  }
  static bool IsLate(void* event) {
    return reinterpret_cast<c10::StreamId>(event) == kLateStream;
  }

  static thread_local c10::StreamId stream;

  const c10::impl::DeviceGuardImplInterface* const before_;
  std::atomic<bool> released_ = false;
  mutable std::atomic<int> waits_ = 0;
  mutable std::atomic<int> blocks_ = 0;
};

thread_local c10::StreamId LateGuard::stream = 0;

at::Tensor Bucket(int rank, int step, int64_t size) {
  return at::arange(size, at::kFloat).add(rank + 0.1 * step).sin();
}

// What a rank has after each of three steps of three buckets.
std::vector<at::Tensor> SumsOn(c10::Device device) {
  std::vector<at::Tensor> sums;
  RunRanks(2, [&](Collectives& collectives) {
    HostReducer reducer(collectives);
    for (int step = 0; step < 3; ++step) {
      std::vector<at::Tensor> buckets;
      // Sizes may change, though those of gradients do not.
      for (const int64_t size : {5, 1000 + step, 1}) {
        buckets.push_back(Bucket(collectives.rank(), step, size).to(device));
        ASSERT_TRUE(reducer.Start(buckets.back()).ok());
      }
      ASSERT_TRUE(reducer.Finish().ok());
      if (collectives.rank() != 1) continue;
      for (const at::Tensor& bucket : buckets) sums.push_back(bucket.cpu());
    }
  });
  return sums;
}

TEST(HostReducerTest, SumsOfADeviceHaveTheBitsOfTheCpu) {
  const std::vector<at::Tensor> want = SumsOn(c10::kCPU);
  const std::vector<at::Tensor> got = SumsOn(PretendDevice());
  ASSERT_EQ(want.size(), 9u);
  ASSERT_EQ(got.size(), 9u);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_TRUE(got[i].equal(want[i])) << i;
  }
  EXPECT_TRUE(want[1].equal(Bucket(0, 0, 1000).add(Bucket(1, 0, 1000))));
}

TEST(HostReducerTest, AGroupOfOneKeepsItsGradients) {
  RunRanks(1, [](Collectives& collectives) {
    HostReducer reducer(collectives);
    const at::Tensor bucket = Bucket(0, 0, 3).to(PretendDevice());
    EXPECT_TRUE(reducer.Start(bucket).ok());
    EXPECT_TRUE(reducer.Finish().ok());
    EXPECT_TRUE(bucket.cpu().equal(Bucket(0, 0, 3)));
  });
}

// Rank 1 has its sums before rank 0 calls Finish().
TEST(HostReducerTest, SumsStartOnceTheCopiesHaveEnded) {
  LateGuard guard;
  Notification summed;
  RunRanks(2, [&](Collectives& collectives) {
    HostReducer reducer(collectives);
    if (collectives.rank() == 0) LateGuard::BeLate();
    const at::Tensor first =
        Bucket(collectives.rank(), 0, 4).to(PretendDevice());
    const at::Tensor second =
        Bucket(collectives.rank(), 1, 5).to(PretendDevice());
    ASSERT_TRUE(reducer.Start(first).ok());
    if (collectives.rank() == 0) guard.Release();
    ASSERT_TRUE(reducer.Start(second).ok());
    if (collectives.rank() == 0) {
      EXPECT_TRUE(summed.WaitForNotificationWithTimeout(absl::Seconds(20)));
      EXPECT_EQ(guard.waits(), 0);
    }
    ASSERT_TRUE(reducer.Finish().ok());
    if (collectives.rank() == 1) summed.Notify();
    EXPECT_TRUE(first.cpu().equal(Bucket(0, 0, 4).add(Bucket(1, 0, 4))));
    EXPECT_TRUE(second.cpu().equal(Bucket(0, 1, 5).add(Bucket(1, 1, 5))));
  });
}

TEST(HostReducerTest, OnlyFinishWaitsForCopies) {
  LateGuard guard;
  Notification summed;
  RunRanks(2, [&](Collectives& collectives) {
    HostReducer reducer(collectives);
    const bool late = collectives.rank() == 0;
    if (late) LateGuard::BeLate();
    for (int step = 0; step < 2; ++step) {
      const at::Tensor first =
          Bucket(collectives.rank(), step, 4).to(PretendDevice());
      const at::Tensor second =
          Bucket(collectives.rank(), step, 5).to(PretendDevice());
      ASSERT_TRUE(reducer.Start(first).ok());
      ASSERT_TRUE(reducer.Start(second).ok());
      if (late) {
        EXPECT_EQ(guard.waits(), 2 * step);
        // The copies of rank 0 have not ended, so there is no sum.
        EXPECT_EQ(step == 0 && summed.WaitForNotificationWithTimeout(
                                   absl::Milliseconds(100)),
                  false);
      }
      ASSERT_TRUE(reducer.Finish().ok());
      EXPECT_EQ(late ? guard.waits() : 2 * step + 2, 2 * step + 2);
      if (!late && step == 0) summed.Notify();
      EXPECT_TRUE(
          second.cpu().equal(Bucket(0, step, 5).add(Bucket(1, step, 5))));
    }
  });
  // Each rank's second step writes what the first one's results came from.
  EXPECT_EQ(guard.blocks(), 4);
}

}  // namespace
}  // namespace millrace::testing
