// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_threads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace millrace::testing {
namespace {

// Each block writes its sum of the numbers below its number of threads, after
// half of the threads have left.
__global__ void SumByHalves(unsigned* sums) {
  __shared__ unsigned numbers[64];
  numbers[threadIdx.x] = threadIdx.x;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) return;
    numbers[threadIdx.x] += numbers[threadIdx.x + half];
  }
  sums[blockIdx.x] = numbers[0];
}

TEST(CudaThreadsTest, ThreadsThatHaveEndedHoldUpNoBarrier) {
  std::vector<unsigned> sums(3);
  RunKernel(SumByHalves, 3, 64, sums.data());
  EXPECT_EQ(sums, std::vector<unsigned>(3, 64 * 63 / 2));
}

// Lanes with an even and those with an odd number meet separately.
__global__ void TalkInWarps(unsigned* ballots, unsigned* matches,
                            unsigned* shuffled, unsigned* up) {
  const unsigned lane = threadIdx.x;
  const unsigned mask = lane % 2 == 0 ? 0x55555555 : 0xAAAAAAAA;
  ballots[lane] = __ballot_sync(mask, lane < 4);
  matches[lane] = __match_any_sync(mask, lane / 4);
  shuffled[lane] = __shfl_sync(mask, lane * 10, lane % 2);
  __syncwarp();
  up[lane] = __shfl_up_sync(~0u, lane, 2);
}

TEST(CudaThreadsTest, LanesSeeTheValuesOfTheirMask) {
  std::vector<unsigned> ballots(32), matches(32), shuffled(32), up(32);
  RunKernel(TalkInWarps, 1, 32, ballots.data(), matches.data(), shuffled.data(),
            up.data());
  EXPECT_EQ(ballots[0], 0b0101u);
  EXPECT_EQ(ballots[31], 0b1010u);
  EXPECT_EQ(matches[6], 0b01010000u);
  EXPECT_EQ(matches[7], 0b10100000u);
  EXPECT_EQ(shuffled[8], 0u);
  EXPECT_EQ(shuffled[9], 10u);
  EXPECT_EQ(up[1], 1u);
  EXPECT_EQ(up[31], 29u);
}

__global__ void AddHalves(float* sums) {
  float sum = 0.5f * threadIdx.x;
  for (unsigned step = 16; step > 0; step /= 2) {
    sum += __shfl_xor_sync(~0u, sum, step);
  }
  sums[threadIdx.x] = sum;
}

TEST(CudaThreadsTest, LanesExchangeFractions) {
  std::vector<float> sums(32);
  RunKernel(AddHalves, 1, 32, sums.data());
  EXPECT_EQ(sums, std::vector<float>(32, 0.5f * 31 * 32 / 2));
}

__global__ void CountInMemory(uint64_t* sum, uint32_t* least, uint32_t* bits,
                              uint32_t* first) {
  atomicAdd(sum, uint64_t{1} << 40);
  atomicMin(least, 100 - threadIdx.x);
  atomicOr(bits, uint32_t{1} << threadIdx.x % 8);
  atomicCAS(first, uint32_t{0}, blockIdx.x + 1);
}

TEST(CudaThreadsTest, AtomicOperationsLoseNothing) {
  uint64_t sum = 0;
  uint32_t least = 1000, bits = 0, first = 0;
  RunKernel(CountInMemory, 4, 20, &sum, &least, &bits, &first);
  EXPECT_EQ(sum, uint64_t{80} << 40);
  EXPECT_EQ(least, 81u);
  EXPECT_EQ(bits, 0xFFu);
  EXPECT_EQ(first, 1u);
}

__global__ void AskEndedLanes() {
  if (threadIdx.x >= 16) return;
  __ballot_sync(~0u, true);
}

__global__ void AskOthers() { __ballot_sync(1u << (threadIdx.x + 1), true); }

TEST(CudaThreadsDeathTest, MistakesEndTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(RunKernel(AskEndedLanes, 1, 32), "a lane of the mask has ended");
  EXPECT_DEATH(RunKernel(AskOthers, 1, 2), "a mask without its own lane");
  EXPECT_DEATH(RunKernel(AskOthers, 0, 32), "an empty grid");
}

}  // namespace
}  // namespace millrace::testing
