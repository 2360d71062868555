// SPDX-License-Identifier: Apache-2.0
// The stand-in for NCCL. Each rank is a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/eventually.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/test_directory.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Environment = std::map<std::string, std::string>;

constexpr const char* kSchedules[] = {"random", "eager", "lazy"};
constexpr int kCount = 1000;

__global__ void Scale(float* values, int count, float factor) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] *= factor;
}

ncclUniqueId ShareId(ForkedRank& rank) {
  ncclUniqueId id = {};
  if (rank.rank() == 0) {
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  }
  const std::string shared = rank.Share({id.internal, sizeof id.internal});
  std::memcpy(id.internal, shared.data(), sizeof id.internal);
  return id;
}

ncclResult_t Init(ForkedRank& rank, bool blocking, ncclComm_t* communicator) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  return ncclCommInitRankConfig(communicator, rank.world(), ShareId(rank),
                                rank.rank(), &config);
}

ncclResult_t AsyncError(ncclComm_t communicator) {
  ncclResult_t error = ncclSuccess;
  EXPECT_EQ(ncclCommGetAsyncError(communicator, &error), ncclSuccess);
  return error;
}

ncclResult_t AwaitProgress(ncclComm_t communicator) {
  EXPECT_TRUE(
      Eventually([&] { return AsyncError(communicator) != ncclInProgress; }));
  return AsyncError(communicator);
}

// What ranks have on their devices: device r is rank r's.
struct OnDevice {
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  void* buffer = nullptr;
};

OnDevice Open(ForkedRank& rank) {
  OnDevice open;
  EXPECT_EQ(cudaSetDevice(rank.rank()), cudaSuccess);
  EXPECT_EQ(Init(rank, true, &open.communicator), ncclSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&open.stream, cudaStreamNonBlocking),
            cudaSuccess);
  EXPECT_EQ(cudaMalloc(&open.buffer, kCount * sizeof(double)), cudaSuccess);
  return open;
}

template <typename T>
void Upload(const OnDevice& open, const std::vector<T>& values) {
  EXPECT_EQ(
      cudaMemcpyAsync(open.buffer, values.data(), values.size() * sizeof(T),
                      cudaMemcpyDefault, open.stream),
      cudaSuccess);
}

template <typename T>
std::vector<T> Download(const OnDevice& open, size_t count) {
  std::vector<T> values(count);
  EXPECT_EQ(cudaMemcpyAsync(values.data(), open.buffer, count * sizeof(T),
                            cudaMemcpyDefault, open.stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(open.stream), cudaSuccess);
  return values;
}

ncclResult_t Sum(const OnDevice& open, size_t count,
                 ncclDataType_t type = ncclFloat32) {
  return ncclAllReduce(open.buffer, open.buffer, count, type, ncclSum,
                       open.communicator, open.stream);
}

// Whether the stream's work ends.
cudaError_t AwaitStream(const OnDevice& open) {
  cudaError_t state = cudaErrorNotReady;
  EXPECT_TRUE(Eventually([&] {
    state = cudaStreamQuery(open.stream);
    return state != cudaErrorNotReady;
  }));
  return state;
}

class NcclStandInTest : public DirectoryTest {
 protected:
  std::vector<int> Run(int world, Environment environment,
                       const std::function<void(ForkedRank&)>& run) {
    environment["NCCLEMU_DIR"] = directory_.string();
    environment["PTXEMU_DEVICES"] = std::to_string(world);
    return RunRanks({.world = world, .environment = environment}, run);
  }
};

template <typename T>
void ExpectSum(ForkedRank& rank, const OnDevice& open, ncclDataType_t type) {
  Upload(open, std::vector<T>(kCount, static_cast<T>(rank.rank() + 1)));
  EXPECT_EQ(Sum(open, kCount, type), ncclSuccess);
  const int sum = rank.world() * (rank.world() + 1) / 2;
  EXPECT_THAT(Download<T>(open, kCount), Each(static_cast<T>(sum)));
}

// `sums` are the bits of 1, 2 and 3.
void ExpectSumOfOnes(ForkedRank& rank, const OnDevice& open,
                     ncclDataType_t type, const std::vector<uint16_t>& sums) {
  Upload(open, std::vector<uint16_t>(kCount, sums[0]));
  EXPECT_EQ(Sum(open, kCount, type), ncclSuccess);
  EXPECT_THAT(Download<uint16_t>(open, kCount), Each(sums[rank.world() - 1]));
}

TEST_F(NcclStandInTest, AddsAllTypes) {
  const auto run = [](ForkedRank& rank) {
    const OnDevice open = Open(rank);
    ExpectSum<float>(rank, open, ncclFloat32);
    ExpectSum<double>(rank, open, ncclFloat64);
    ExpectSum<int32_t>(rank, open, ncclInt32);
    ExpectSum<int64_t>(rank, open, ncclInt64);
    ExpectSumOfOnes(rank, open, ncclFloat16, {0x3c00, 0x4000, 0x4200});
    ExpectSumOfOnes(rank, open, ncclBfloat16, {0x3f80, 0x4000, 0x4040});
    EXPECT_EQ(ncclCommFinalize(open.communicator), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(open.communicator), ncclSuccess);
  };
  for (const char* schedule : kSchedules) {
    for (const int world : {1, 2, 3}) {
      EXPECT_THAT(Run(world, {{"PTXEMU_SCHED", schedule}}, run), Each(0));
    }
  }
}

// 1e8 + 1 is 1e8 in float, so the order shows in the sums.
TEST_F(NcclStandInTest, AddsInTheOrderAskedFor) {
  const std::map<std::string, std::vector<float>> sums = {
      {"rank", {0, 0, 0}}, {"tree", {0, 0, 0}}, {"ring", {0, 1, 0}}};
  for (const auto& [order, expected] : sums) {
    const auto run = [&](ForkedRank& rank) {
      const OnDevice open = Open(rank);
      const float values[] = {1e8F, 1, -1e8F};
      Upload(open, std::vector<float>(3, values[rank.rank()]));
      EXPECT_EQ(Sum(open, 3), ncclSuccess);
      EXPECT_EQ(Download<float>(open, 3), expected);
    };
    EXPECT_THAT(Run(3, {{"NCCLEMU_ORDER", order}}, run), Each(0));
  }
}

TEST_F(NcclStandInTest, TellsPlaces) {
  const auto run = [](ForkedRank& rank) {
    int version = 0, ranks = 0, own = -1, device = -1;
    const OnDevice open = Open(rank);
    EXPECT_EQ(ncclGetVersion(&version), ncclSuccess);
    EXPECT_EQ(version, NCCL_VERSION_CODE);
    EXPECT_EQ(ncclCommCount(open.communicator, &ranks), ncclSuccess);
    EXPECT_EQ(ranks, 2);
    EXPECT_EQ(ncclCommUserRank(open.communicator, &own), ncclSuccess);
    EXPECT_EQ(own, rank.rank());
    EXPECT_EQ(ncclCommCuDevice(open.communicator, &device), ncclSuccess);
    EXPECT_EQ(device, rank.rank());
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

TEST_F(NcclStandInTest, BroadcastsInGroups) {
  const auto run = [](ForkedRank& rank) {
    const OnDevice open = Open(rank);
    Upload(open, std::vector<float>(kCount, rank.rank() + 1.0F));
    EXPECT_EQ(ncclGroupStart(), ncclSuccess);
    EXPECT_EQ(ncclBroadcast(open.buffer, open.buffer, kCount, ncclFloat32, 2,
                            open.communicator, open.stream),
              ncclSuccess);
    EXPECT_EQ(Sum(open, kCount / 2), ncclSuccess);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    std::vector<float> expected(kCount, 3);
    std::fill_n(expected.begin(), kCount / 2, 9.0F);
    EXPECT_EQ(Download<float>(open, kCount), expected);
    EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  };
  for (const char* schedule : kSchedules) {
    EXPECT_THAT(Run(3, {{"PTXEMU_SCHED", schedule}}, run), Each(0));
  }
}

// Doubles on one stream, adds up on another one, and triples on the first.
std::vector<float> SumBetweenKernels(ForkedRank& rank, bool with_events) {
  const OnDevice open = Open(rank);
  cudaStream_t compute = nullptr;
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking),
            cudaSuccess);
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
            cudaSuccess);
  auto* const values = static_cast<float*>(open.buffer);
  Upload(open, std::vector<float>(kCount, 1));
  EXPECT_EQ(cudaStreamSynchronize(open.stream), cudaSuccess);
  Scale<<<8, 128, 0, compute>>>(values, kCount, 2);
  EXPECT_EQ(cudaEventRecord(event, compute), cudaSuccess);
  if (with_events) cudaStreamWaitEvent(open.stream, event, 0);
  EXPECT_EQ(Sum(open, kCount), ncclSuccess);
  EXPECT_EQ(cudaEventRecord(event, open.stream), cudaSuccess);
  if (with_events) cudaStreamWaitEvent(compute, event, 0);
  Scale<<<8, 128, 0, compute>>>(values, kCount, 3);
  EXPECT_EQ(cudaStreamSynchronize(compute), cudaSuccess);
  return Download<float>(open, kCount);
}

TEST_F(NcclStandInTest, OperationsRunInStreamOrder) {
  const auto run = [](ForkedRank& rank) {
    EXPECT_THAT(SumBetweenKernels(rank, true), Each(12));
  };
  for (const char* schedule : kSchedules) {
    EXPECT_THAT(Run(2, {{"PTXEMU_SCHED", schedule}}, run), Each(0));
  }
}

TEST_F(NcclStandInTest, MissingEventIsNoticed) {
  const auto run = [](ForkedRank& rank) {
    const std::vector<float> sums = SumBetweenKernels(rank, false);
    if (sums != std::vector<float>(kCount, 12)) rank.Die();
  };
  int noticed = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    const std::vector<int> outcomes = Run(
        2, {{"PTXEMU_SEED", std::to_string(seed)}, {"PTXEMU_SCHED", "random"}},
        run);
    noticed += outcomes != std::vector<int>{0, 0};
  }
  EXPECT_GT(noticed, 0);
}

TEST_F(NcclStandInTest, AbortFreesThoseThatWaitForTheDead) {
  const auto run = [](ForkedRank& rank) {
    const OnDevice open = Open(rank);
    if (rank.rank() == 1) rank.Die();
    Upload(open, std::vector<float>(kCount, 1));
    EXPECT_EQ(Sum(open, kCount), ncclSuccess);
    EXPECT_TRUE(Eventually([&] { return rank.lost() == 1; }));
    EXPECT_EQ(cudaStreamQuery(open.stream), cudaErrorNotReady);
    EXPECT_EQ(AsyncError(open.communicator), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(open.communicator), ncclSuccess);
    EXPECT_THAT(Download<uint8_t>(open, kCount * sizeof(float)), Each(0xCD));
    EXPECT_EQ(Sum(open, kCount), ncclInvalidArgument);
  };
  EXPECT_THAT(Run(2, {}, run), ElementsAre(0, -SIGKILL));
}

TEST_F(NcclStandInTest, ReportsTheDeadIfAsked) {
  const auto run = [](ForkedRank& rank) {
    const OnDevice open = Open(rank);
    if (rank.rank() == 1) rank.Die();
    EXPECT_EQ(Sum(open, kCount), ncclSuccess);
    EXPECT_TRUE(Eventually([&] {
      cudaStreamQuery(open.stream);
      return AsyncError(open.communicator) == ncclRemoteError;
    }));
    EXPECT_THAT(ncclGetLastError(open.communicator),
                HasSubstr("rank 1 is gone"));
    EXPECT_EQ(Sum(open, kCount), ncclRemoteError);
    EXPECT_EQ(ncclCommAbort(open.communicator), ncclSuccess);
  };
  EXPECT_THAT(Run(2, {{"NCCLEMU_DEAD", "report"}}, run),
              ElementsAre(0, -SIGKILL));
}

// Rank 1 does something else than rank 0.
void ExpectMismatch(ForkedRank& rank, bool hangs,
                    const std::function<ncclResult_t(const OnDevice&)>& zero,
                    const std::function<ncclResult_t(const OnDevice&)>& one) {
  const OnDevice open = Open(rank);
  EXPECT_EQ(rank.rank() == 0 ? zero(open) : one(open), ncclSuccess);
  // Roots of broadcasts may be through, and look back when they go on.
  Sum(open, kCount);
  if (!hangs) {
    EXPECT_EQ(AwaitStream(open), cudaErrorIllegalAddress);
  }
  EXPECT_TRUE(Eventually([&] {
    cudaStreamQuery(open.stream);
    return AsyncError(open.communicator) == ncclInvalidUsage;
  }));
  EXPECT_THAT(ncclGetLastError(open.communicator),
              AllOf(HasSubstr("on rank 0"), HasSubstr("on rank 1")));
  EXPECT_EQ(ncclCommAbort(open.communicator), ncclSuccess);
}

TEST_F(NcclStandInTest, RanksThatDifferAreReportedOnAll) {
  using Call = std::function<ncclResult_t(const OnDevice&)>;
  const auto broadcast = [](int root) {
    return [root](const OnDevice& open) {
      return ncclBroadcast(open.buffer, open.buffer, kCount, ncclFloat32, root,
                           open.communicator, open.stream);
    };
  };
  const Call sum = [](const OnDevice& open) { return Sum(open, kCount); };
  const Call shorter = [](const OnDevice& open) { return Sum(open, 10); };
  const Call integers = [](const OnDevice& open) {
    return Sum(open, kCount, ncclInt32);
  };
  for (const char* schedule : kSchedules) {
    for (const auto& [zero, one] :
         std::vector<std::pair<Call, Call>>{{sum, shorter},
                                            {sum, integers},
                                            {sum, broadcast(0)},
                                            {broadcast(0), broadcast(1)}}) {
      const auto run = [&](ForkedRank& rank) {
        ExpectMismatch(rank, false, zero, one);
      };
      EXPECT_THAT(Run(2, {{"PTXEMU_SCHED", schedule}}, run), Each(0));
    }
  }
  const auto run = [&](ForkedRank& rank) {
    ExpectMismatch(rank, true, sum, shorter);
  };
  EXPECT_THAT(Run(2, {{"NCCLEMU_MISMATCH", "hang"}}, run), Each(0));
}

TEST_F(NcclStandInTest, PointersAreCheckedOnTheDevice) {
  const auto run = [](ForkedRank& rank) {
    OnDevice open = Open(rank);
    std::vector<double> host(kCount);
    void* const device_buffer = std::exchange(open.buffer, host.data());
    EXPECT_EQ(Sum(open, kCount), ncclSuccess);
    EXPECT_EQ(AwaitStream(open), cudaErrorIllegalAddress);
    EXPECT_THAT(cudaGetErrorString(cudaErrorIllegalAddress),
                HasSubstr("sendbuff"));
    open.buffer = device_buffer;
  };
  EXPECT_THAT(Run(1, {}, run), Each(0));
}

TEST_F(NcclStandInTest, TwoRanksCannotHaveOneDevice) {
  const auto run = [](ForkedRank& rank) {
    ncclComm_t communicator = nullptr;
    EXPECT_EQ(Init(rank, true, &communicator), ncclInvalidUsage);
    EXPECT_EQ(communicator, nullptr);
    EXPECT_THAT(ncclGetLastError(nullptr),
                HasSubstr("Duplicate GPU detected : rank 0 and rank 1"));
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

TEST_F(NcclStandInTest, InitNeedNotBlock) {
  const auto run = [](ForkedRank& rank) {
    EXPECT_EQ(cudaSetDevice(rank.rank()), cudaSuccess);
    int ranks = 0;
    ncclComm_t communicator = nullptr;
    EXPECT_EQ(Init(rank, false, &communicator), ncclInProgress);
    EXPECT_EQ(AsyncError(communicator), ncclInProgress);
    EXPECT_EQ(ncclCommCount(communicator, &ranks), ncclInvalidArgument);
    EXPECT_EQ(AwaitProgress(communicator), ncclSuccess);
    EXPECT_EQ(ncclCommFinalize(communicator), ncclInProgress);
    EXPECT_EQ(AwaitProgress(communicator), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(communicator), ncclSuccess);
    EXPECT_EQ(ncclCommDestroy(communicator), ncclInvalidArgument);
  };
  EXPECT_THAT(Run(2, {{"NCCLEMU_INIT_DELAY_MS", "20"}}, run), Each(0));
}

// A communicator that does not block may launch after the call.
TEST_F(NcclStandInTest, OperationsMayBeInProgress) {
  const auto run = [](ForkedRank& rank) {
    OnDevice open = Open(rank);
    EXPECT_EQ(ncclCommDestroy(open.communicator), ncclSuccess);
    EXPECT_EQ(Init(rank, false, &open.communicator), ncclInProgress);
    EXPECT_EQ(AwaitProgress(open.communicator), ncclSuccess);
    int in_progress = 0;
    for (int i = 0; i < 20; ++i) {
      Upload(open, std::vector<float>(kCount, 1));
      const ncclResult_t result = Sum(open, kCount);
      EXPECT_THAT(result, ::testing::AnyOf(ncclSuccess, ncclInProgress));
      in_progress += result == ncclInProgress;
      EXPECT_EQ(AwaitProgress(open.communicator), ncclSuccess);
      EXPECT_THAT(Download<float>(open, kCount), Each(2));
    }
    EXPECT_GT(in_progress, 0);
    EXPECT_LT(in_progress, 20);
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

TEST_F(NcclStandInTest, AbortEndsAnInitThatWaits) {
  const auto run = [](ForkedRank& rank) {
    ncclComm_t communicator = nullptr;
    const ncclUniqueId id = ShareId(rank);
    if (rank.rank() == 1) return;  // never comes
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    EXPECT_EQ(ncclCommInitRankConfig(&communicator, 2, id, 0, &config),
              ncclInProgress);
    EXPECT_EQ(ncclCommAbort(communicator), ncclSuccess);
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

TEST_F(NcclStandInTest, CallsFailAsAsked) {
  const auto run = [](ForkedRank& rank) {
    const OnDevice open = Open(rank);
    EXPECT_EQ(Sum(open, kCount), ncclSuccess);
    EXPECT_EQ(Sum(open, kCount),
              rank.rank() == 1 ? ncclRemoteError : ncclSuccess);
    EXPECT_EQ(AsyncError(open.communicator), ncclInternalError);
  };
  EXPECT_THAT(Run(2,
                  {{"NCCLEMU_FAIL",
                    "ncclAllReduce@1:2=ncclRemoteError,"
                    "ncclCommGetAsyncError:1=3"}},
                  run),
              Each(0));
}

// The host waits for something else, as a trainer does for another group.
TEST_F(NcclStandInTest, OperationsEndWhileTheHostIsBusy) {
  const auto run = [](ForkedRank& rank) {
    const OnDevice open = Open(rank);
    Upload(open, std::vector<float>(kCount, 1));
    EXPECT_EQ(Sum(open, kCount), ncclSuccess);
    if (rank.rank() == 0) {
      EXPECT_THAT(Download<float>(open, kCount), Each(2));
    }
    rank.Meet();
  };
  EXPECT_THAT(Run(2, {{"PTXEMU_SCHED", "lazy"}}, run), Each(0));
}

}  // namespace
}  // namespace millrace::testing
