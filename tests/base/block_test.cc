// SPDX-License-Identifier: Apache-2.0
#include "common/base/block.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/base/config.h"

namespace millrace {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

bool KeepsBlocks() {
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
  return false;
#else
  return true;
#endif
}

TEST(AllocateBlock, IsAlignedAndWritableToItsEnd) {
  for (const size_t bytes :
       {0ul, 1ul, 65535ul, 65536ul, 65537ul, 3 * kMiB + 1}) {
    const std::shared_ptr<std::byte> block = AllocateBlock(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 64, 0u);
    std::memset(block.get(), 1, bytes);
  }
}

TEST(AllocateBlock, ReusesAFreedBlockOfSimilarSize) {
  if (!KeepsBlocks())
    GTEST_SKIP() << "freed blocks are not cached under this sanitizer";
  std::byte* first = AllocateBlock(10 * kMiB).get();  // freed at once
  const std::shared_ptr<std::byte> larger = AllocateBlock(20 * kMiB);
  EXPECT_NE(larger.get(), first);
  const std::shared_ptr<std::byte> again = AllocateBlock(10 * kMiB - 5000);
  EXPECT_EQ(again.get(), first);
  const std::shared_ptr<std::byte> other = AllocateBlock(10 * kMiB);
  EXPECT_NE(other.get(), first);
}

// A small array would otherwise hold the memory of a large one.
TEST(AllocateBlock, DoesNotReuseAMuchLargerBlock) {
  if (!KeepsBlocks())
    GTEST_SKIP() << "freed blocks are not cached under this sanitizer";
  std::byte* large = AllocateBlock(40 * kMiB).get();  // freed at once
  const std::shared_ptr<std::byte> small = AllocateBlock(30 * kMiB);
  EXPECT_NE(small.get(), large);
}

TEST(AllocateBlock, NeverHandsOutABlockThatIsInUse) {
  std::vector<std::shared_ptr<std::byte>> blocks;
  std::set<const std::byte*> seen;
  for (int i = 0; i < 200; ++i) {
    blocks.push_back(AllocateBlock(65536 + 1000 * (i % 7)));
    EXPECT_TRUE(seen.insert(blocks.back().get()).second);
  }
}

TEST(AllocateBlock, KeepsNoMoreThanItsBound) {
  {
    std::vector<std::shared_ptr<std::byte>> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(AllocateBlock(10 * kMiB));
  }
  EXPECT_LE(KeptBlockBytes(), kKeptBlockBytes);
  if (KeepsBlocks()) {
    EXPECT_GE(KeptBlockBytes(), kKeptBlockBytes - 12 * kMiB);
  }
  AllocateBlock(kKeptBlockBytes + kMiB);  // larger than all that is kept
  EXPECT_LE(KeptBlockBytes(), kKeptBlockBytes);
}

TEST(AllocateBlock, ServesManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 500; ++i) {
        const size_t bytes = 65536 + 4096 * ((i * 7 + t) % 32);
        const std::shared_ptr<std::byte> block = AllocateBlock(bytes);
        std::memset(block.get(), t, bytes);
        for (size_t at = 0; at < bytes; at += 4096) {
          ASSERT_EQ(block.get()[at], std::byte(t));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace millrace
