// SPDX-License-Identifier: Apache-2.0
#include "client/cuda/rank_device.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "common/base/field_error.h"
#include "common/cuda/runtime/cuda_status.h"

namespace millrace::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RankDeviceTest, RanksHaveTheGpuWithTheirNumber) {
  for (const int rank : {0, 1, 3}) {
    EXPECT_EQ(DeviceOfRank(rank, 4).value_or(-1), rank);
  }
}

TEST(RankDeviceTest, TheOnlyGpuIsTheRanksOwn) {
  EXPECT_EQ(DeviceOfRank(3, 1).value_or(-1), 0);
  EXPECT_EQ(DeviceOfRank(std::nullopt, 1).value_or(-1), 0);
}

TEST(RankDeviceTest, SaysThatThereAreTooFewGpus) {
  for (const int rank : {2, 7}) {
    const absl::Status status = DeviceOfRank(rank, 2).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(ReasonOf(status), "too_few_gpus");
    EXPECT_EQ(status.message(),
              "this rank is number " + std::to_string(rank) +
                  " on its host (from 0), but sees only 2 GPUs");
  }
}

TEST(RankDeviceTest, ARankMustKnowItsNumberIfThereAreSeveralGpus) {
  const absl::Status status = DeviceOfRank(std::nullopt, 2).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("\nset LOCAL_RANK "));
}

TEST(RankDeviceTest, ErrorsHaveReasons) {
  for (const auto& [error, reason] :
       {std::pair(cudaErrorInsufficientDriver, "no_gpu"),
        std::pair(cudaErrorNoDevice, "no_gpu"),
        std::pair(cudaErrorNoKernelImageForDevice, "no_gpu"),
        std::pair(cudaErrorMemoryAllocation, "gpu_is_full"),
        std::pair(cudaErrorDevicesUnavailable, "gpu_is_busy"),
        std::pair(cudaErrorECCUncorrectable, "gpu_has_failed"),
        std::pair(cudaErrorLaunchFailure, "gpu_has_failed")}) {
    const absl::Status from = CudaStatus(error, "cannot open CUDA device 1");
    const absl::Status status = WithDeviceReason(from);
    EXPECT_EQ(status.code(), from.code());
    EXPECT_EQ(ReasonOf(status), reason);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(std::string("cannot open CUDA device 1: ") +
                          cudaGetErrorName(error)));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  }
}

}  // namespace
}  // namespace millrace::cuda
