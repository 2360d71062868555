// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/pinned_pool.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace millrace::cuda {
namespace {

TEST(PinnedPoolTest, UsesBlocksAgain) {
  const auto pool = PinnedPool::Create(0, 1 << 20);
  auto block = pool->Allocate(5000).value();
  std::memset(block.get(), 1, 5000);
  const std::byte* data = block.get();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0);
  EXPECT_EQ(pool->idle_bytes(), 0);
  block.reset();
  EXPECT_EQ(pool->idle_bytes(), 5120);
  EXPECT_EQ(PinnedPool::BlockBytes(5000), 5120);
  EXPECT_EQ(pool->Allocate(4700).value().get(), data);
  const auto first = pool->Allocate(8192).value();
  const auto second = pool->Allocate(8192).value();
  EXPECT_NE(first.get(), second.get());
}

TEST(PinnedPoolTest, KeepsUpToItsLimit) {
  const auto pool = PinnedPool::Create(0, 13000);
  pool->Allocate(4096).value();
  pool->Allocate(8192).value();
  EXPECT_EQ(pool->idle_bytes(), 12288) << "though only one was used at once";
  pool->Allocate(16384).value();
  EXPECT_EQ(pool->idle_bytes(), 16384) << "as much as was in use at once";
}

TEST(PinnedPoolTest, GivesUpTheSizeThatWasFreedLeastRecently) {
  const auto pool = PinnedPool::Create(0, 24576);
  const auto allocate = [&](uint64_t bytes) {
    return pool->Allocate(bytes).value().get();
  };
  const std::byte* first = allocate(4096);
  allocate(8192);
  EXPECT_EQ(allocate(4096), first);
  const std::byte* third = allocate(16384);
  EXPECT_EQ(pool->idle_bytes(), 20480) << "4096 and 16384";
  EXPECT_EQ(allocate(4096), first);
  EXPECT_EQ(allocate(16384), third);
  allocate(8192);
  EXPECT_EQ(pool->idle_bytes(), 24576) << "8192 and 16384";
}

TEST(PinnedPoolTest, KeepsAsMuchAsWasInUseAtOnce) {
  const auto pool = PinnedPool::Create(0, 0);
  auto first = pool->Allocate(8192).value();
  auto second = pool->Allocate(8192).value();
  first.reset();
  EXPECT_EQ(pool->idle_bytes(), 8192);
  second.reset();
  EXPECT_EQ(pool->idle_bytes(), 16384);
  pool->Allocate(4096).value();
  EXPECT_EQ(pool->idle_bytes(), 12288) << "a block of the other size is freed";
}

TEST(PinnedPoolTest, BlocksMayOutliveIt) {
  auto pool = PinnedPool::Create(0, 1 << 20);
  auto block = pool->Allocate(1).value();
  pool.reset();
  block.reset();
}

}  // namespace
}  // namespace millrace::cuda
