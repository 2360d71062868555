// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/call/replica_failure.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/wire/error_info.h"

namespace millrace {
namespace {

TEST(ReplicaFailureTest, WhatAnotherReplicaMayServeIsRefused) {
  const ReplicaFailure failure = AssessFailure(WithErrorInfo(
      absl::DataLossError("torn file"), {.partition = 3, .moved = true}));
  EXPECT_TRUE(failure.refused);
  EXPECT_EQ(failure.status, absl::UnavailableError("torn file"));
}

TEST(ReplicaFailureTest, AServerThatStopsIsUnavailable) {
  const ReplicaFailure failure = AssessFailure(absl::CancelledError(""));
  EXPECT_FALSE(failure.refused);
  EXPECT_TRUE(absl::IsUnavailable(failure.status)) << failure.status;
  EXPECT_FALSE(failure.status.message().empty());
}

TEST(ReplicaFailureTest, OtherErrorsStay) {
  const absl::Status busy =
      WithErrorInfo(absl::ResourceExhaustedError("busy"),
                    {.partition = 3, .retry_after = absl::Seconds(1)});
  const ReplicaFailure failure = AssessFailure(busy);
  EXPECT_FALSE(failure.refused);
  EXPECT_EQ(failure.status, busy);
}

}  // namespace
}  // namespace millrace
