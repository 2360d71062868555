// SPDX-License-Identifier: Apache-2.0
#include "client/tensor/torch_status.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>

#include <new>
#include <stdexcept>
#include <string>

#include "common/base/field_error.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status Allocate(at::IntArrayRef shape) {
  return CatchTorch("training", [&] {
    at::empty(shape, at::kFloat);
    return absl::OkStatus();
  });
}

template <typename Error>
absl::Status Throw(const Error& error) {
  return CatchTorch("training", [&]() -> absl::Status { throw error; });
}

TEST(CatchTorchTest, SaysHowMuchMemoryWasWanted) {
  const absl::Status status = Allocate({int64_t{1} << 46});
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("training ran out of memory when it needed "
                         "281474976710656 bytes more"));
  EXPECT_EQ(ReasonOf(status), "out_of_memory");
  const absl::Status beyond = Allocate({int64_t{1} << 31, int64_t{1} << 31, 2});
  EXPECT_EQ(beyond.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(beyond.message()), HasSubstr("2^64 bytes"));
}

TEST(CatchTorchTest, TellsMemoryFromOtherErrors) {
  EXPECT_EQ(Throw(std::bad_alloc()).code(),
            absl::StatusCode::kResourceExhausted);
  const absl::Status other = Throw(std::runtime_error("no such kernel"));
  EXPECT_EQ(other.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(other.message()), "training: no such kernel");
}

TEST(CatchTorchTest, SaysHowMuchMemoryOfADeviceWasWanted) {
  const auto fail = [](const std::string& message) {
    return CatchTorch("training", [&]() -> absl::Status {
      TORCH_CHECK_WITH(OutOfMemoryError, false, message);
    });
  };
  const absl::Status status = fail(
      "CUDA out of memory. Tried to allocate 20.50 MiB. GPU 0 has a total "
      "capacity of 7.79 GiB of which 1.25 MiB is free.");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(std::string(status.message()),
            "training ran out of the device's memory when it needed 20.50 MiB "
            "more");
  EXPECT_EQ(ReasonOf(status), "out_of_device_memory");
  EXPECT_EQ(std::string(fail("no more").message()),
            "training ran out of the device's memory");
}

TEST(CatchTorchTest, TellsFailuresOfADevice) {
  const auto fail = [](int32_t code, const std::string& message) {
    return Throw(c10::AcceleratorError({}, code, message));
  };
  const absl::Status lost =
      fail(719, "CUDA error: unspecified launch failure\nSearch for it");
  EXPECT_TRUE(absl::IsUnavailable(lost));
  EXPECT_EQ(std::string(lost.message()),
            "training: CUDA error: unspecified launch failure");
  EXPECT_EQ(ReasonOf(lost), "gpu_has_failed");
  EXPECT_EQ(ReasonOf(fail(2, "CUDA error: out of memory")),
            "out_of_device_memory");
  EXPECT_EQ(ReasonOf(Throw(std::runtime_error(
                "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling"))),
            "out_of_device_memory");
}

}  // namespace
}  // namespace millrace
