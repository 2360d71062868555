// SPDX-License-Identifier: Apache-2.0
#include "client/remote/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/wire/error_info.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch();

absl::Status Lost(int partition) {
  return WithErrorInfo(absl::UnavailableError("connection refused"),
                       {.partition = partition});
}

TEST(RetryTest, FinalErrorsAreReturnedAtOnce) {
  Retry retry(absl::Seconds(20));
  const absl::Status failure = absl::InvalidArgumentError("no such seed");
  EXPECT_EQ(retry.After(failure, kStart).status(), failure);
}

TEST(RetryTest, BacksOffUpToASecond) {
  Retry retry(absl::Hours(1));
  absl::Duration longest;
  for (int i = 0; i < 50; ++i) {
    const auto wait = retry.After(Lost(0), kStart);
    ASSERT_TRUE(wait.ok());
    EXPECT_GT(*wait, absl::ZeroDuration());
    longest = std::max(longest, *wait);
  }
  EXPECT_GT(longest, absl::Milliseconds(500));
  EXPECT_LE(longest, absl::Seconds(1));
}

TEST(RetryTest, GivesUpNamingThePartitionWhenTheWaitIsOver) {
  Retry retry(absl::Seconds(20));
  ASSERT_TRUE(retry.After(Lost(1), kStart).ok());
  ASSERT_TRUE(retry.After(Lost(1), kStart + absl::Seconds(19)).ok());
  const auto end = retry.After(Lost(1), kStart + absl::Seconds(20));
  EXPECT_EQ(end.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("partition 1: connection refused; gave up after 20s"));
}

TEST(RetryTest, OverloadDoesNotCountAsALostPartition) {
  Retry retry(absl::Seconds(20));
  const absl::Status busy = absl::ResourceExhaustedError("too many batches");
  ASSERT_TRUE(retry.After(busy, kStart).ok());
  ASSERT_TRUE(retry.After(busy, kStart + absl::Minutes(5)).ok());
  ASSERT_TRUE(retry.After(Lost(0), kStart + absl::Minutes(5)).ok());
  const auto end = retry.After(busy, kStart + absl::Minutes(10));
  EXPECT_EQ(end.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(end.status().message()),
              HasSubstr("--max-inflight-bytes"));
}

}  // namespace
}  // namespace millrace
