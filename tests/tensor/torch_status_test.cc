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

}  // namespace
}  // namespace millrace
