// SPDX-License-Identifier: Apache-2.0
// Kernels that use what nvcc, CUB and cooperative groups make of C++. Their
// results are compared with the host's.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cub/cub.cuh>
#include <cuda/atomic>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace {

namespace cg = cooperative_groups;

constexpr int kManyItems = 5000;

template <typename T>
T* Upload(const std::vector<T>& values) {
  T* uploaded = nullptr;
  const size_t bytes = values.size() * sizeof(T);
  EXPECT_EQ(cudaMalloc(&uploaded, bytes), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(uploaded, values.data(), bytes, cudaMemcpyHostToDevice),
            cudaSuccess);
  return uploaded;
}

template <typename T>
std::vector<T> Download(const T* from, size_t count) {
  std::vector<T> values(count);
  EXPECT_EQ(cudaMemcpy(values.data(), from, count * sizeof(T),
                       cudaMemcpyDeviceToHost),
            cudaSuccess);
  return values;
}

template <typename T>
std::vector<T> RandomValues(size_t count, uint64_t limit = ~uint64_t{0}) {
  std::mt19937_64 random(1);
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random() % limit);
  return values;
}

// Calls a function of CUB for the size of its workspace, and then to run.
template <typename F>
void WithWorkspace(F run) {
  size_t bytes = 0;
  void* workspace = nullptr;
  EXPECT_EQ(run(nullptr, bytes), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&workspace, bytes), cudaSuccess);
  EXPECT_EQ(run(workspace, bytes), cudaSuccess);
  EXPECT_EQ(cudaFree(workspace), cudaSuccess);
}

__constant__ int table[4] = {3, 1, 4, 1};
__device__ int counter;

__host__ __device__ __noinline__ uint64_t CollatzSteps(uint64_t n, int depth) {
  if (n == 1 || depth > 100) return depth;
  return CollatzSteps(n % 2 == 1 ? 3 * n + 1 : n / 2, depth + 1);
}

__global__ void CallFunctions(uint64_t* out) {
  const auto i = threadIdx.x;
  out[i] = CollatzSteps(i + 1, 0) * 10 + table[i % 4];
  atomicAdd(&counter, 1);
}

TEST(Kernels, CallFunctionsAndReadConstants) {
  constexpr int kThreads = 64;
  auto* const out = Upload(std::vector<uint64_t>(kThreads));
  CallFunctions<<<1, kThreads>>>(out);
  const std::vector<uint64_t> results = Download(out, kThreads);
  const int expected_table[] = {3, 1, 4, 1};
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(results[i], CollatzSteps(i + 1, 0) * 10 + expected_table[i % 4]);
  }
  int counted = 0;
  EXPECT_EQ(cudaMemcpyFromSymbol(&counted, counter, sizeof counted),
            cudaSuccess);
  EXPECT_EQ(counted, kThreads);
}

__global__ void SumTiles(const int* in, int* sums) {
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  const auto i = blockIdx.x * blockDim.x + threadIdx.x;
  const int sum = cg::reduce(tile, in[i], cg::plus<int>());
  if (tile.thread_rank() == 0) sums[i / 8] = sum;
}

TEST(Kernels, ReduceInGroups) {
  const auto values = RandomValues<int>(256, 100);
  auto* const sums = Upload(std::vector<int>(32));
  SumTiles<<<2, 128>>>(Upload(values), sums);
  const std::vector<int> results = Download(sums, 32);
  for (int i = 0; i < 32; ++i) {
    const auto begin = values.begin() + 8 * i;
    EXPECT_EQ(results[i], std::accumulate(begin, begin + 8, 0));
  }
}

__global__ void ReduceWarp(const unsigned* in, unsigned* out) {
  const unsigned value = in[threadIdx.x];
  out[threadIdx.x] =
      __reduce_add_sync(~0u, value) + __reduce_max_sync(~0u, value);
}

TEST(Kernels, ReduceInWarps) {
  const auto values = RandomValues<unsigned>(32, 1000);
  auto* const out = Upload(values);
  ReduceWarp<<<1, 32>>>(Upload(values), out);
  EXPECT_EQ(Download(out, 32)[7],
            std::accumulate(values.begin(), values.end(), 0u) +
                *std::max_element(values.begin(), values.end()));
}

__global__ void ReverseSquares(int* out, int count) {
  extern __shared__ int shared[];
  for (int i = threadIdx.x; i < count; i += blockDim.x) shared[i] = i * i;
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    out[i] = shared[count - 1 - i];
  }
  const int counted = __syncthreads_count(threadIdx.x % 3 == 0);
  if (threadIdx.x == 0) out[count] = counted;
}

TEST(Kernels, UseDynamicSharedMemoryAndCountAtBarriers) {
  constexpr int kCount = 3000;
  auto* const out = Upload(std::vector<int>(kCount + 1));
  ReverseSquares<<<1, 100, kCount * sizeof(int)>>>(out, kCount);
  const std::vector<int> results = Download(out, kCount + 1);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(results[i], (kCount - 1 - i) * (kCount - 1 - i));
  }
  EXPECT_EQ(results[kCount], 34);
}

__global__ void RoundToHalves(const float* in, float* out) {
  const auto i = threadIdx.x;
  out[i] = __bfloat162float(__float2bfloat16_rn(in[i])) +
           __half2float(__float2half_rn(in[i]));
}

TEST(Kernels, ConvertToFloatsOf16Bits) {
  std::vector<float> values = RandomValues<float>(100, 100000);
  for (float& value : values) value /= 977;
  auto* const out = Upload(values);
  RoundToHalves<<<1, 100>>>(Upload(values), out);
  const std::vector<float> results = Download(out, 100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(results[i], __bfloat162float(__float2bfloat16_rn(values[i])) +
                              __half2float(__float2half_rn(values[i])));
  }
}

using DeviceInt = cuda::atomic_ref<int, cuda::thread_scope_device>;

__global__ void PassMessage(int* added, unsigned* wrapped, int* data,
                            int* flag) {
  DeviceInt(*added).fetch_add(1, cuda::memory_order_relaxed);
  atomicInc(wrapped, 9u);
  DeviceInt ready(*flag);
  if (blockIdx.x == 1 && threadIdx.x == 0) {
    *data = 42;
    ready.store(1, cuda::memory_order_release);
  }
  if (blockIdx.x == 0 && threadIdx.x == 5) {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *data += 1;
  }
}

TEST(Kernels, SynchronizeBlocksByAtomics) {
  const std::vector<int> zero(1);
  int* const added = Upload(zero);
  int* const data = Upload(zero);
  auto* const wrapped = Upload(std::vector<unsigned>(1));
  PassMessage<<<3, 64>>>(added, wrapped, data, Upload(zero));
  EXPECT_EQ(Download(data, 1)[0], 43);
  EXPECT_EQ(Download(added, 1)[0], 192);
  EXPECT_EQ(Download(wrapped, 1)[0], 192u % 10);
}

__host__ __device__ uint64_t WideArithmetic(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + a;
  const uint64_t quotient = a / (b | 1);
  const auto remainder = static_cast<uint64_t>(static_cast<int64_t>(a) %
                                               static_cast<int64_t>(b | 1));
  return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product) ^
         quotient ^ remainder;
}

__global__ void ComputeWide(const uint64_t* in, uint64_t* out) {
  const auto i = threadIdx.x;
  out[i] = WideArithmetic(in[i], in[(i + 1) % blockDim.x] >> i);
}

TEST(Kernels, ComputeWith128Bits) {
  const auto values = RandomValues<uint64_t>(32);
  auto* const out = Upload(values);
  ComputeWide<<<1, 32>>>(Upload(values), out);
  const std::vector<uint64_t> results = Download(out, 32);
  for (int i = 0; i < 32; ++i) {
    EXPECT_EQ(results[i], WideArithmetic(values[i], values[(i + 1) % 32] >> i));
  }
}

__global__ void SaturateAndFlush(int* saturated, float* sums) {
  __shared__ float shared;
  asm("mad.hi.sat.s32 %0, %1, %2, %3;"
      : "=r"(saturated[0])
      : "r"(0x7fffffff), "r"(0x7fffffff), "r"(0x7fffffff));
  asm("mad.hi.sat.s32 %0, %1, %2, %3;"
      : "=r"(saturated[1])
      : "r"(-0x7fffffff), "r"(0x7fffffff), "r"(-0x7fffffff));
  shared = 0;
  atomicAdd(&shared, 1e-40f);
  atomicAdd(&sums[0], 1e-40f);
  sums[1] = shared;
}

TEST(Kernels, SaturateProductsAndFlushSumsInGlobalMemory) {
  int* const saturated = Upload(std::vector<int>(2));
  float* const sums = Upload(std::vector<float>(2));
  SaturateAndFlush<<<1, 1>>>(saturated, sums);
  EXPECT_EQ(Download(saturated, 2), (std::vector<int>{INT32_MAX, INT32_MIN}));
  EXPECT_EQ(Download(sums, 2), (std::vector<float>{0, 1e-40f}));
}

struct Less {
  __device__ bool operator()(uint32_t a, uint32_t b) const { return a < b; }
};

TEST(Cub, SortsPairsStably) {
  const auto keys = RandomValues<uint64_t>(kManyItems, 500);
  std::vector<uint32_t> values(kManyItems);
  std::iota(values.begin(), values.end(), 0);
  auto* const keys_in = Upload(keys);
  auto* const keys_out = Upload(keys);
  auto* const values_in = Upload(values);
  auto* const values_out = Upload(values);
  WithWorkspace([&](void* workspace, size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(workspace, bytes, keys_in, keys_out,
                                           values_in, values_out, kManyItems);
  });
  std::stable_sort(values.begin(), values.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  EXPECT_EQ(Download(values_out, kManyItems), values);
}

TEST(Cub, ScansAndReduces) {
  const auto values = RandomValues<uint32_t>(kManyItems, 1000);
  auto* const in = Upload(values);
  auto* const sums = Upload(values);
  auto* const most = Upload(std::vector<uint32_t>(1));
  WithWorkspace([&](void* workspace, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(workspace, bytes, in, sums,
                                         kManyItems);
  });
  WithWorkspace([&](void* workspace, size_t& bytes) {
    return cub::DeviceReduce::Max(workspace, bytes, in, most, kManyItems);
  });
  std::vector<uint32_t> expected(kManyItems);
  std::partial_sum(values.begin(), values.end(), expected.begin());
  EXPECT_EQ(Download(sums, kManyItems), expected);
  EXPECT_EQ(Download(most, 1)[0],
            *std::max_element(values.begin(), values.end()));
}

TEST(Cub, SortsSegmentsAndByMerging) {
  const std::vector<int> ends{0, 10, 10, 500, 2000, kManyItems};
  auto values = RandomValues<uint32_t>(kManyItems);
  auto* const in = Upload(values);
  auto* const out = Upload(values);
  int* const offsets = Upload(ends);
  WithWorkspace([&](void* workspace, size_t& bytes) {
    return cub::DeviceSegmentedSort::SortKeys(
        workspace, bytes, in, out, kManyItems, 5, offsets, offsets + 1);
  });
  WithWorkspace([&](void* workspace, size_t& bytes) {
    return cub::DeviceMergeSort::SortKeys(workspace, bytes, in, kManyItems,
                                          Less());
  });
  std::vector<uint32_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(Download(in, kManyItems), sorted);
  for (int i = 0; i < 5; ++i) {
    std::sort(values.begin() + ends[i], values.begin() + ends[i + 1]);
  }
  EXPECT_EQ(Download(out, kManyItems), values);
}

}  // namespace
