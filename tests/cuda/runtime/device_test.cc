// SPDX-License-Identifier: Apache-2.0
#include "common/cuda/runtime/device.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/cuda/runtime/cuda_status.h"
#include "common/cuda/runtime/device_memory.h"

namespace millrace::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeviceTest, CountsDevices) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(CountDevices().value_or(0), count);
}

TEST(DeviceTest, OpensADevice) {
  const auto device = OpenDevice(0);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->index, 0);
  EXPECT_NE(device->name, "");
  EXPECT_GE(device->major, 7);
}

TEST(DeviceTest, NamesADeviceThatDoesNotExist) {
  for (const int index : {-1, 99}) {
    const absl::Status status = OpenDevice(index).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("CUDA device " + std::to_string(index)),
                      HasSubstr("cudaErrorInvalidDevice"),
                      HasSubstr("CUDA_VISIBLE_DEVICES")));
  }
}

TEST(DeviceTest, CountsItsMemory) {
  ASSERT_TRUE(OpenDevice(0).ok());
  const auto before = MemoryUseOf(0);
  ASSERT_TRUE(before.ok()) << before.status();
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  ASSERT_GT(before->free_bytes, 2 * kBytes);
  auto block = AllocateDevice(0, kBytes, "a test");
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_LE(MemoryUseOf(0)->free_bytes, before->free_bytes - kBytes);
  block->reset();
  EXPECT_EQ(MemoryUseOf(0)->free_bytes, before->free_bytes);
}

TEST(DeviceTest, SaysWhatDoesNotFit) {
  ASSERT_TRUE(OpenDevice(0).ok());
  const uint64_t total = MemoryUseOf(0)->total_bytes;
  const absl::Status status =
      AllocateDevice(0, total + 1, "the graph").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("the graph takes " + std::to_string(total + 1) +
                              " bytes"),
                    HasSubstr("of " + std::to_string(total) + " bytes free")));
  // The failure is not taken for that of the next call.
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(CudaStatusTest, SaysWhatToDo) {
  EXPECT_TRUE(CudaStatus(cudaSuccess, "x").ok());
  const absl::Status driver =
      CudaStatus(cudaErrorInsufficientDriver, "cannot use CUDA");
  EXPECT_EQ(driver.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(driver.message()),
              AllOf(HasSubstr("cannot use CUDA: cudaErrorInsufficientDriver: "),
                    HasSubstr("\ninstall NVIDIA's driver 580 or later")));
  const absl::Status kernel =
      CudaStatus(cudaErrorNoKernelImageForDevice, "cannot run kernels");
  EXPECT_EQ(kernel.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(kernel.message()),
              HasSubstr("CMAKE_CUDA_ARCHITECTURES"));
  EXPECT_EQ(CudaStatus(cudaErrorMemoryAllocation, "x").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(CudaStatus(cudaErrorIllegalAddress, "x").code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace millrace::cuda
