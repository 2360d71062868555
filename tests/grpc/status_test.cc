// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/status.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/cord.h"
#include "common/base/status_lines.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

TEST(StatusTest, EveryCodeRoundTrips) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    const absl::Status back = FromGrpcStatus(ToGrpcStatus(status));
    EXPECT_EQ(back, status);
  }
}

TEST(StatusTest, ErrorInfoRoundTrips) {
  const absl::Status status =
      WithErrorInfo(absl::UnavailableError("gone"),
                    {.partition = 3, .retry_after = absl::Milliseconds(250)});
  const absl::Status back = FromGrpcStatus(ToGrpcStatus(status));
  EXPECT_EQ(ErrorInfoOf(back).partition, 3);
  EXPECT_EQ(ErrorInfoOf(back).retry_after, absl::Milliseconds(250));
  EXPECT_FALSE(ErrorInfoOf(absl::UnavailableError("x")).partition.has_value());
}

// The ErrorInfo of an untrusted server may hold any numbers.
TEST(StatusTest, HugeNumbersOfAnErrorInfoDoNotOverflow) {
  std::string bytes;
  bytes += "\x08\xff\xff\xff\xff\x0f";                      // field 1
  bytes += "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";  // field 2
  absl::Status status = absl::UnavailableError("gone");
  status.SetPayload(AbslView(kErrorInfoUrl), absl::Cord(bytes));
  EXPECT_FALSE(ErrorInfoOf(status).partition.has_value());
  EXPECT_EQ(ErrorInfoOf(status).retry_after, absl::Hours(24));
}

TEST(StatusTest, SurvivesUnknownDetailsAndCodes) {
  const ::grpc::Status odd(static_cast<::grpc::StatusCode>(20), "odd",
                           "not a message \xff\xff");
  EXPECT_EQ(FromGrpcStatus(odd).code(), absl::StatusCode::kUnknown);
}

TEST(StatusTest, CutsMessagesThatWouldNotFitTrailers) {
  const absl::Status status = absl::InternalError(std::string(100000, 'x'));
  EXPECT_LE(ToGrpcStatus(status).error_message().size(), 4096u);
}

// Protobuf refuses strings that are not UTF-8, and with them the details.
TEST(StatusTest, CutsMessagesBetweenCharacters) {
  for (const size_t letters : {1020, 1021, 1022, 1023, 1024}) {
    const std::string text = std::string(letters, 'x') + "\u00e9\u4e2d";
    const absl::Status status =
        WithErrorInfo(absl::FailedPreconditionError(text), {.partition = 3});
    const absl::Status back = FromGrpcStatus(ToGrpcStatus(status));
    EXPECT_EQ(ErrorInfoOf(back).partition, 3) << letters;
    EXPECT_EQ(text.find(std::string(back.message())), 0u) << letters;
    EXPECT_GE(back.message().size(), 1020u) << letters;
  }
}

TEST(StatusTest, OnlyTransientErrorsAreRetryable) {
  EXPECT_TRUE(IsRetryable(absl::UnavailableError("")));
  EXPECT_TRUE(IsRetryable(
      WithErrorInfo(absl::ResourceExhaustedError(""),
                    {.partition = {}, .retry_after = absl::Milliseconds(50)})));
  EXPECT_TRUE(IsRetryable(absl::UnknownError("Stream removed")));
  EXPECT_FALSE(IsRetryable(absl::OkStatus()));
  // This is gRPC's own error for a message that is too large.
  EXPECT_FALSE(IsRetryable(absl::ResourceExhaustedError("")));
  EXPECT_FALSE(IsRetryable(absl::FailedPreconditionError("")));
  EXPECT_FALSE(IsRetryable(absl::InvalidArgumentError("")));
  EXPECT_FALSE(IsRetryable(absl::DataLossError("")));
  EXPECT_FALSE(IsRetryable(absl::CancelledError("")));
}

TEST(StatusTest, CallsEndedToShedLoadAreRetried) {
  const absl::Status calm =
      FromGrpcStatus({::grpc::StatusCode::RESOURCE_EXHAUSTED,
                      "Received RST_STREAM with error code 11"});
  EXPECT_TRUE(absl::IsResourceExhausted(calm));
  EXPECT_TRUE(IsRetryable(calm));
  const absl::Status ended =
      FromGrpcStatus({::grpc::StatusCode::RESOURCE_EXHAUSTED,
                      StrCat(kEndedForOthers, ", and why")});
  EXPECT_TRUE(absl::IsResourceExhausted(ended));
  EXPECT_TRUE(IsRetryable(ended));
  EXPECT_FALSE(IsRetryable(
      FromGrpcStatus({::grpc::StatusCode::RESOURCE_EXHAUSTED,
                      "Received message larger than max (20 vs. 10)"})));
}

TEST(StatusTest, StreamsThatBreakOffAreRetried) {
  const absl::Status broken = FromGrpcStatus(
      {::grpc::StatusCode::INTERNAL, "Received RST_STREAM with error code 0"});
  EXPECT_EQ(broken,
            absl::UnavailableError("Received RST_STREAM with error code 0"));
  EXPECT_TRUE(IsRetryable(broken));
  EXPECT_FALSE(IsRetryable(
      FromGrpcStatus({::grpc::StatusCode::INTERNAL, "a bug: Received"})));
}

TEST(StatusTest, OnlyErrorsOfOneServerAreServedElsewhere) {
  EXPECT_TRUE(IsServedElsewhere(absl::PermissionDeniedError("")));
  EXPECT_TRUE(IsServedElsewhere(absl::UnauthenticatedError("")));
  for (const absl::Status& status :
       {absl::FailedPreconditionError("x"), absl::DataLossError("x")}) {
    EXPECT_FALSE(IsServedElsewhere(status));
    EXPECT_FALSE(IsServedElsewhere(
        WithErrorInfo(status, {.partition = {}, .moved = false})));
    EXPECT_TRUE(IsServedElsewhere(
        WithErrorInfo(status, {.partition = {}, .moved = true})));
  }
  for (const absl::Status& status :
       {absl::OkStatus(), absl::NotFoundError("x"),
        absl::InvalidArgumentError("x"), absl::UnavailableError("x")}) {
    EXPECT_FALSE(IsServedElsewhere(status));
  }
  EXPECT_FALSE(IsServedElsewhere(WithErrorInfo(
      absl::NotFoundError("x"), {.partition = {}, .moved = true})));
}

TEST(StatusTest, AdviceFollowsTheFirstLine) {
  const absl::Status status = absl::InternalError("what\nwhat to do\nmore");
  EXPECT_EQ(FirstLine(status), "what");
  EXPECT_EQ(AdviceOf(status), "\nwhat to do\nmore");
  EXPECT_EQ(FirstLine(absl::InternalError("what")), "what");
  EXPECT_EQ(AdviceOf(absl::InternalError("what")), "");
}

}  // namespace
}  // namespace millrace
