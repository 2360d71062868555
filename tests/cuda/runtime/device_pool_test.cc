// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device_pool.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/cuda/runtime/device.h"
#include "common/cuda/runtime/device_memory.h"

namespace millrace::cuda {
namespace {

constexpr uint64_t kMany = uint64_t{1} << 20;

// What the pool's rules are, pinned_pool_test.cc checks.
class DevicePoolTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(OpenDevice(0).ok()); }

  static uint64_t FreeBytes() { return MemoryUseOf(0).value().free_bytes; }
};

TEST_F(DevicePoolTest, HasMemoryOfTheDevice) {
  const auto pool = DevicePool::Create(0);
  EXPECT_EQ(pool->device(), 0);
  const auto block = pool->Allocate(5000).value();
  const std::string text = "on the device";
  std::string read(text.size(), ' ');
  ASSERT_EQ(cudaMemcpy(block.get() + 4000, text.data(), text.size(),
                       cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaMemcpy(read.data(), block.get() + 4000, text.size(),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(read, text);
}

TEST_F(DevicePoolTest, UsesBlocksAgainAndFreesThemAtItsEnd) {
  const uint64_t before = FreeBytes();
  auto pool = DevicePool::Create(0);
  auto block = pool->Allocate(kMany).value();
  const std::byte* data = block.get();
  block.reset();
  EXPECT_EQ(pool->idle_bytes(), kMany);
  EXPECT_EQ(FreeBytes(), before - kMany);
  block = pool->Allocate(kMany - 1).value();
  EXPECT_EQ(block.get(), data);
  pool.reset();
  EXPECT_EQ(FreeBytes(), before - kMany) << "a block keeps the pool";
  std::thread([freed = std::move(block)]() mutable { freed.reset(); }).join();
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(DevicePoolTest, IsSharedAsLongAsItIsUsed) {
  const uint64_t before = FreeBytes();
  auto pool = DevicePool::Of(0);
  EXPECT_EQ(DevicePool::Of(0), pool);
  auto block = pool->Allocate(kMany).value();
  pool.reset();
  EXPECT_EQ(DevicePool::Of(0)->idle_bytes(), 0);
  block.reset();
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(DevicePoolTest, GivesUpWhatItKeepsIfMemoryIsShort) {
  const auto pool = DevicePool::Create(0);
  pool->Allocate(kMany).value();
  const DeviceBlock taken =
      AllocateDevice(0, FreeBytes() - kMany / 2, "a test").value();
  EXPECT_NE(pool->AllocateIfRoom(kMany + kMany / 4).value(), nullptr);
  EXPECT_EQ(pool->AllocateIfRoom(2 * kMany).value(), nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(pool->Allocate(2 * kMany).status()));
  EXPECT_EQ(pool->idle_bytes(), 0);
}

TEST_F(DevicePoolTest, GivesUpWhatItKeepsForOthers) {
  const auto pool = DevicePool::Create(0);
  pool->Allocate(kMany).value();
  int attempts = 0;
  const auto ran = DeviceGate::Of(0)->Run([&] { return ++attempts == 2; });
  EXPECT_TRUE(ran.value());
  EXPECT_EQ(pool->idle_bytes(), 0);
}

}  // namespace
}  // namespace millrace::cuda
