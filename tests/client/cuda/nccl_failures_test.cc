// SPDX-License-Identifier: Apache-2.0
// Failures of ranks, NCCL and devices, which must end what the other ranks wait
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cuda/nccl_reducer.h"
#include "common/base/interrupt.h"
#include "common/base/steady_time.h"
#include "tests/client/cuda/nccl_ranks.h"

namespace millrace::testing {
namespace {

using cuda::NcclGroup;
using cuda::NcclReducer;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NcclFailuresTest : public NcclRanksTest {};

// Rank 1 is killed in the middle of a step.
void LoseRankOne(ForkedRank& rank) {
  auto reducer = Connect(rank);
  ASSERT_NE(reducer, nullptr);
  if (rank.rank() == 1) {
    Gradients gradients(1);
    EXPECT_EQ(TakeStep(*reducer, gradients, 1, 0), absl::OkStatus());
    EXPECT_EQ(
        reducer->Add(gradients.on_device(0), kCounts[0], gradients.compute()),
        absl::OkStatus());
    rank.Die();
  }
  const absl::Status status = StepsUntilFailure(*reducer, rank);
  EXPECT_EQ(status, LossOf(rank));
  EXPECT_EQ(rank.lost(), 1);
  const SteadyTime start = SteadyNow();
  reducer.reset();
  EXPECT_LT(SteadyNow() - start, absl::Seconds(5));
}

TEST_F(NcclFailuresTest, LostRankIsNamed) {
  for (const char* schedule : kSchedules) {
    EXPECT_THAT(Run(3, {{"PTXEMU_SCHED", schedule}}, LoseRankOne),
                ElementsAre(0, -SIGKILL, 0));
  }
}

// Between hosts, NCCL fails before the heartbeat is missed.
TEST_F(NcclFailuresTest, LostRankIsNamedAfterNcclHasFailed) {
  constexpr absl::Duration kLater = absl::Milliseconds(600);
  for (const char* schedule : kSchedules) {
    EXPECT_THAT(Run(3, {{"PTXEMU_SCHED", schedule}, {"NCCLEMU_DEAD", "report"}},
                    LoseRankOne, kLater),
                ElementsAre(0, -SIGKILL, 0));
  }
}

TEST_F(NcclFailuresTest, RankLostWhileConnectingIsNamed) {
  const auto run = [](ForkedRank& rank) {
    NcclGroup group = GroupOf(rank);
    if (rank.rank() == 1) {
      group.share = [&](const std::string& bytes) {
        rank.Share(bytes);
        rank.Die();
        return std::string();
      };
    }
    const auto reducer = NcclReducer::Connect(group);
    EXPECT_EQ(reducer.status(), LossOf(rank));
    EXPECT_EQ(rank.lost(), 1);
  };
  EXPECT_THAT(Run(3, {}, run), ElementsAre(0, -SIGKILL, 0));
}

// What rank 1 says when a function of NCCL gives it a result. Rank 0 goes on
// until rank 1 is lost.
struct PlannedFailure {
  std::string plan;
  absl::StatusCode code;
  std::string message;
};

TEST_F(NcclFailuresTest, ErrorsOfNcclAreReported) {
  const PlannedFailure failures[] = {
      {"ncclCommInitRankConfig@1:1=ncclSystemError",
       absl::StatusCode::kUnavailable, "NCCL_SOCKET_IFNAME"},
      {"ncclAllReduce@1:1=ncclInternalError", absl::StatusCode::kInternal,
       "NCCL failed on rank 1 although all ranks are alive"},
      {"ncclAllReduce@1:4=ncclRemoteError", absl::StatusCode::kUnavailable,
       "NCCL_SOCKET_IFNAME"},
      {"ncclCommGetAsyncError@1:5=ncclUnhandledCudaError",
       absl::StatusCode::kUnavailable, "CUDA device 1 has failed"},
      {"ncclCommGetAsyncError@1:9=ncclRemoteError",
       absl::StatusCode::kUnavailable, "NCCL_SOCKET_IFNAME"}};
  for (const PlannedFailure& failure : failures) {
    SCOPED_TRACE(failure.plan);
    const auto run = [&](ForkedRank& rank) {
      auto reducer =
          NcclReducer::Connect(GroupOf(rank, absl::Milliseconds(100)));
      const absl::Status status =
          reducer.ok() ? StepsUntilFailure(**reducer, rank) : reducer.status();
      if (rank.rank() == 0) {
        EXPECT_EQ(status, LossOf(rank));
        return;
      }
      EXPECT_EQ(status.code(), failure.code) << status;
      EXPECT_THAT(
          std::string(status.message()),
          AllOf(HasSubstr(failure.message), HasSubstr("fails as asked")));
      if (!::testing::Test::HasFailure()) rank.Die();
    };
    EXPECT_THAT(Run(2, {{"NCCLEMU_FAIL", failure.plan}}, run),
                ElementsAre(0, -SIGKILL));
  }
}

absl::Status AddDifferentCounts(ForkedRank& rank) {
  const auto reducer = Connect(rank);
  Gradients gradients(rank.rank());
  gradients.Compute(0, [](size_t) { return 1; });
  // The other rank's call may already have shown the difference.
  const absl::Status added = reducer->Add(
      gradients.on_device(0), 100 + rank.rank(), gradients.compute());
  return added.ok() ? reducer->Finish() : added;
}

TEST_F(NcclFailuresTest, RanksThatDifferAreReported) {
  const auto run = [](ForkedRank& rank) {
    const absl::Status status = AddDifferentCounts(rank);
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("ncclAllReduce(100 x float32)"),
                      HasSubstr("ncclAllReduce(101 x float32)")));
  };
  EXPECT_THAT(Run(2, {{"NCCLEMU_MISMATCH", "hang"}}, run), Each(0));
}

TEST_F(NcclFailuresTest, FaultOfTheDeviceIsReported) {
  const auto run = [](ForkedRank& rank) {
    const auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    std::vector<float> host(10);
    EXPECT_EQ(reducer->Add(host.data(), host.size(), nullptr),
              absl::OkStatus());
    const absl::Status status = reducer->Finish();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("CUDA device 0 has failed: cudaErrorIllegalAddress"));
  };
  EXPECT_THAT(Run(1, {}, run), Each(0));
}

TEST_F(NcclFailuresTest, InterruptEndsTheWait) {
  const auto run = [](ForkedRank& rank) {
    InstallInterruptHandler();
    const auto reducer = Connect(rank);
    ASSERT_NE(reducer, nullptr);
    Gradients gradients(rank.rank());
    if (rank.rank() == 0) {
      gradients.Compute(0, [](size_t) { return 1; });
      EXPECT_EQ(
          reducer->Add(gradients.on_device(0), kCounts[0], gradients.compute()),
          absl::OkStatus());
      raise(SIGTERM);
      EXPECT_TRUE(absl::IsCancelled(reducer->Finish()));
    }
    rank.Meet();
  };
  EXPECT_THAT(Run(2, {}, run), Each(0));
}

// Takes a step in which a call of CUDA fails on rank 0.
void FailOnRankZero(ForkedRank& rank, int call, int exit_status_if_none) {
  if (rank.rank() == 0) {
    const std::string plan = "*:" + std::to_string(call) + "=700!";
    setenv("PTXEMU_FAIL", plan.c_str(), 1);
  }
  Gradients gradients(rank.rank());
  gradients.Compute(0, [](size_t) { return 1; });
  auto reducer = NcclReducer::Connect(GroupOf(rank));
  absl::Status status = reducer.status();
  if (status.ok()) {
    status = (*reducer)->Add(gradients.on_device(0), kCounts[0],
                             gradients.compute());
  }
  if (status.ok()) status = (*reducer)->Finish();
  if (rank.rank() == 1) {
    EXPECT_TRUE(status.ok() || status == LossOf(rank)) << status;
    return;
  }
  if (status.ok()) std::_Exit(exit_status_if_none);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("CUDA device 0 has failed"));
  if (!::testing::Test::HasFailure()) rank.Die();
}

// Lets each call of CUDA by rank 0 fail, after those that are the test's.
TEST_F(NcclFailuresTest, ErrorsOfCudaAreReported) {
  constexpr int kTestCalls = 2 + 2 * kBuckets + 1;
  constexpr int kNoneFailed = 42;
  int call = kTestCalls;
  std::vector<int> outcomes;
  do {
    ++call;
    SCOPED_TRACE(call);
    outcomes = Run(2, {}, [&](ForkedRank& rank) {
      FailOnRankZero(rank, call, kNoneFailed);
    });
    EXPECT_THAT(outcomes, ElementsAre(AnyOf(-SIGKILL, kNoneFailed), 0));
  } while (outcomes[0] != kNoneFailed && !HasFailure());
  EXPECT_GT(call, kTestCalls + 10);
}

}  // namespace
}  // namespace millrace::testing
