// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/pinned_memory.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>

namespace millrace::cuda {
namespace {

bool IsPinned(const std::byte* data) {
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, data), cudaSuccess);
  return attributes.type == cudaMemoryTypeHost;
}

TEST(PinnedMemoryTest, PinsWhatIsLarge) {
  PinnedMemory memory(0);
  EXPECT_EQ(memory.device(), 0);
  const auto large = memory.Allocate(PinnedMemory::kMinPinnedBytes);
  const auto small = memory.Allocate(PinnedMemory::kMinPinnedBytes - 1);
  EXPECT_TRUE(IsPinned(large.get()));
  EXPECT_FALSE(IsPinned(small.get()));
}

TEST(PinnedMemoryTest, OutlivesItsOwner) {
  auto memory = std::make_unique<PinnedMemory>(0);
  const auto block = memory->Allocate(100'000);
  memory.reset();
  std::memset(block.get(), 1, 100'000);
  EXPECT_TRUE(IsPinned(block.get()));
}

}  // namespace
}  // namespace millrace::cuda
