// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/nccl_reducer.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/field_error.h"
#include "common/base/steady_time.h"
#include "tests/client/cuda/nccl_ranks.h"

namespace millrace::testing {
namespace {

using cuda::NcclGroup;
using cuda::NcclReducer;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class NcclReducerTest : public NcclRanksTest {};

TEST_F(NcclReducerTest, AddsUpBucketsOverRanks) {
  for (const int world : {1, 2, 3}) {
    RunAll(world, [](ForkedRank& rank) {
      std::vector<int> ranks(rank.world());
      for (int r = 0; r < rank.world(); ++r) ranks[r] = r;
      const auto reducer = Connect(rank);
      ASSERT_NE(reducer, nullptr);
      Gradients gradients(rank.rank());
      for (int step = 0; step < 3; ++step) {
        EXPECT_EQ(TakeStep(*reducer, gradients, rank.rank(), step),
                  absl::OkStatus());
        for (size_t b = 0; b < kBuckets; ++b) {
          EXPECT_EQ(gradients.Read(b), SumOf(ranks, step, b));
        }
      }
    });
  }
}

// Nothing but an order between streams keeps sums from running before the slow
// computations of what they add.
TEST_F(NcclReducerTest, SumsWaitForComputations) {
  const auto run = [](ForkedRank& rank) {
    const auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    Gradients gradients(rank.rank());
    for (size_t b = 0; b < kBuckets; ++b) {
      EXPECT_EQ(
          cudaLaunchHostFunc(
              gradients.compute(),
              [](void*) { absl::SleepFor(absl::Milliseconds(30)); }, nullptr),
          cudaSuccess);
      gradients.Compute(
          b, [&](size_t i) { return GradientOf(rank.rank(), 0, b, i); });
      EXPECT_EQ(
          reducer->Add(gradients.on_device(b), kCounts[b], gradients.compute()),
          absl::OkStatus());
    }
    EXPECT_EQ(reducer->Finish(), absl::OkStatus());
    for (size_t b = 0; b < kBuckets; ++b) {
      EXPECT_EQ(gradients.Read(b), SumOf({0, 1}, 0, b));
    }
  };
  for (const char* schedule : kSchedules) {
    EXPECT_THAT(
        Run(2, {{"PTXEMU_SCHED", schedule}, {"NCCLEMU_DELAY_US", "0"}}, run),
        Each(0));
  }
}

// The last rank has nothing to compute: it adds zeros once it knows that.
TEST_F(NcclReducerTest, RankWithoutBatchAddsZeros) {
  RunAll(3, [](ForkedRank& rank) {
    const auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    Gradients gradients(rank.rank());
    const bool has_batch = rank.rank() < 2;
    if (!has_batch) rank.Meet();
    for (size_t b = 0; b < kBuckets; ++b) {
      gradients.Compute(b, [&](size_t i) {
        return has_batch ? GradientOf(rank.rank(), 0, b, i) : 0;
      });
      EXPECT_EQ(
          reducer->Add(gradients.on_device(b), kCounts[b], gradients.compute()),
          absl::OkStatus());
      if (has_batch && b == 0) rank.Meet();
    }
    EXPECT_EQ(reducer->Finish(), absl::OkStatus());
    for (size_t b = 0; b < kBuckets; ++b) {
      EXPECT_EQ(gradients.Read(b), SumOf({0, 1}, 0, b));
    }
  });
}

TEST_F(NcclReducerTest, AnyDeviceMayBeCurrent) {
  RunAll(2, [](ForkedRank& rank) {
    const auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    Gradients gradients(rank.rank());
    EXPECT_EQ(cudaSetDevice(1 - rank.rank()), cudaSuccess);
    EXPECT_EQ(TakeStep(*reducer, gradients, rank.rank(), 0), absl::OkStatus());
    EXPECT_EQ(gradients.Read(0), SumOf({0, 1}, 0, 0));
  });
}

TEST_F(NcclReducerTest, EmptyBucketsAndStepsAreRight) {
  RunAll(2, [](ForkedRank& rank) {
    const auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    EXPECT_EQ(reducer->Finish(), absl::OkStatus());
    EXPECT_EQ(reducer->Add(nullptr, 0, nullptr), absl::OkStatus());
    EXPECT_EQ(reducer->Finish(), absl::OkStatus());
  });
}

TEST_F(NcclReducerTest, RankThatNeverComesEndsTheStart) {
  const auto run = [](ForkedRank& rank) {
    NcclGroup group = GroupOf(rank);
    group.start_timeout = absl::Milliseconds(300);
    if (rank.rank() == 0) {
      const absl::Status status = NcclReducer::Connect(group).status();
      EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(HasSubstr("within 300ms"), HasSubstr("NCCL_SOCKET_IFNAME")));
    } else {
      rank.Gather("another GPU");
    }
    rank.Meet();
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

TEST_F(NcclReducerTest, SlowStartIsAwaited) {
  const auto run = [](ForkedRank& rank) {
    const auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    Gradients gradients(rank.rank());
    EXPECT_EQ(TakeStep(*reducer, gradients, rank.rank(), 0), absl::OkStatus());
  };
  EXPECT_THAT(Run(2, {{"NCCLEMU_INIT_DELAY_MS", "200"}}, run), Each(0));
}

TEST_F(NcclReducerTest, AllRanksLearnThatThereIsNoId) {
  const auto run = [](ForkedRank& rank) {
    const absl::Status status = NcclReducer::Connect(GroupOf(rank)).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("rank 0 cannot start NCCL"));
  };
  EXPECT_THAT(
      Run(3, {{"NCCLEMU_FAIL", "ncclGetUniqueId:1=ncclSystemError"}}, run),
      Each(0));
}

TEST_F(NcclReducerTest, WrongIdIsRefused) {
  const auto run = [](ForkedRank& rank) {
    NcclGroup group = GroupOf(rank);
    group.share = [](const std::string&) { return std::string("id"); };
    const absl::Status status = NcclReducer::Connect(group).status();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
  };
  EXPECT_THAT(Run(1, {}, run), Each(0));
}

TEST_F(NcclReducerTest, FailedShareIsReturned) {
  const auto run = [](ForkedRank& rank) {
    NcclGroup group = GroupOf(rank);
    group.share = [](const std::string&) -> absl::StatusOr<std::string> {
      return absl::UnavailableError("rank 0 is gone");
    };
    EXPECT_EQ(NcclReducer::Connect(group).status(),
              absl::UnavailableError("rank 0 is gone"));
  };
  EXPECT_THAT(Run(1, {}, run), Each(0));
}

TEST_F(NcclReducerTest, RanksOnOneGpuAreRefused) {
  const auto run = [](ForkedRank& rank) {
    NcclGroup group = GroupOf(rank);
    group.device = rank.rank() % 2;
    const absl::Status status = NcclReducer::Connect(group).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(ReasonOf(status), "shared_gpu");
    EXPECT_THAT(std::string(status.message()),
                StartsWith("ranks 0 and 2 have the same GPU, which NCCL does "
                           "not allow: ptxemu at 0000:01:00.0 of host "));
  };
  EXPECT_THAT(Run(3, {}, run), Each(0));
}

// As with srun --gpus-per-task=1.
TEST_F(NcclReducerTest, RanksMaySeeOneGpuEach) {
  const auto run = [](ForkedRank& rank) {
    setenv("CUDA_VISIBLE_DEVICES", std::to_string(rank.rank()).c_str(), 1);
    NcclGroup group = GroupOf(rank);
    group.device = 0;
    EXPECT_EQ(NcclReducer::Connect(group).status(), absl::OkStatus());
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

TEST_F(NcclReducerTest, RefusalOfNcclIsReported) {
  const auto run = [](ForkedRank& rank) {
    const absl::Status status = NcclReducer::Connect(GroupOf(rank)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("NCCL refuses the group: "),
                      HasSubstr("the same version of NCCL")));
  };
  EXPECT_THAT(
      Run(1, {{"NCCLEMU_FAIL", "ncclCommInitRankConfig:1=ncclInvalidUsage"}},
          run),
      Each(0));
}

TEST_F(NcclReducerTest, NcclMustNotBlock) {
  const auto run = [](ForkedRank& rank) {
    const absl::Status status = NcclReducer::Connect(GroupOf(rank)).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("NCCL_COMM_BLOCKING is 1"));
  };
  EXPECT_THAT(Run(1, {{"NCCL_COMM_BLOCKING", "1"}}, run), Each(0));
}

TEST_F(NcclReducerTest, MayEndBeforeItsSums) {
  const auto run = [](ForkedRank& rank) {
    auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    Gradients gradients(rank.rank());
    if (rank.rank() == 0) {
      gradients.Compute(0, [](size_t) { return 1; });
      EXPECT_EQ(
          reducer->Add(gradients.on_device(0), kCounts[0], gradients.compute()),
          absl::OkStatus());
    }
    const SteadyTime start = SteadyNow();
    reducer.reset();
    EXPECT_LT(SteadyNow() - start, absl::Seconds(5));
    rank.Meet();
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

}  // namespace
}  // namespace millrace::testing
