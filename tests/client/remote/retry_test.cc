// SPDX-License-Identifier: Apache-2.0
#include "client/remote/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/field_error.h"
#include "common/base/steady_time.h"
#include "common/wire/error_info.h"
#include "tests/support/captured_log.h"

namespace millrace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const SteadyTime kStart = SteadyTime();

absl::Status Lost(int partition) {
  return WithErrorInfo(absl::UnavailableError("connection refused"),
                       {.partition = partition});
}

TEST(RetryTest, FinalErrorsAreReturnedAtOnce) {
  Retry retry(absl::Seconds(20));
  const absl::Status failure = absl::InvalidArgumentError("no such seed");
  EXPECT_EQ(retry.After(failure, kStart).status(), failure);
}

// gRPC itself refuses such messages; busy servers say when to ask again.
TEST(RetryTest, MessagesThatAreTooLargeAreFinal) {
  Retry retry(absl::Seconds(20));
  const absl::Status failure =
      absl::ResourceExhaustedError("Received message larger than max");
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

// Each wait is random, but at least half of what it may be.
TEST(RetryTest, WaitsGrowFrom50MillisecondsByThreeFifths) {
  for (int round = 0; round < 20; ++round) {
    Retry retry(absl::Hours(1));
    for (const double most_ms : {50.0, 80.0, 128.0, 204.8, 327.68, 524.288,
                                 838.8608, 1000.0, 1000.0}) {
      const auto wait = retry.After(Lost(0), kStart);
      ASSERT_TRUE(wait.ok()) << wait.status();
      EXPECT_GE(*wait, absl::Milliseconds(most_ms / 2 - 0.001));
      EXPECT_LE(*wait, absl::Milliseconds(most_ms + 0.001));
    }
  }
}

TEST(RetryTest, WaitsAsLongAsTheServerAsksUnlessTheTimeIsUp) {
  Retry retry(absl::Seconds(20));
  const absl::Status later =
      WithErrorInfo(absl::UnavailableError("later"),
                    {.partition = 1, .retry_after = absl::Seconds(9)});
  EXPECT_EQ(*retry.After(later, kStart), absl::Seconds(9));
  EXPECT_EQ(*retry.After(later, kStart + absl::Seconds(12)), absl::Seconds(8));
  constexpr absl::Duration kRest = absl::Microseconds(500);
  EXPECT_EQ(*retry.After(later, kStart + absl::Seconds(20) - kRest), kRest);
}

TEST(RetryTest, EachPartitionHasItsOwnWait) {
  Retry retry(absl::Seconds(20));
  ASSERT_TRUE(retry.After(Lost(1), kStart).ok());
  ASSERT_TRUE(retry.After(Lost(2), kStart + absl::Seconds(10)).ok());
  // Every call must end before the client gives up the first of these
  // partitions.
  EXPECT_EQ(retry.TimeoutOf(absl::Minutes(1), kStart + absl::Seconds(12)),
            absl::Seconds(8));
  EXPECT_EQ(retry.MaxSilenceOf(1, kStart + absl::Seconds(12)),
            absl::Seconds(8));
  EXPECT_EQ(retry.MaxSilenceOf(2, kStart + absl::Seconds(12)),
            absl::Seconds(18));
  EXPECT_TRUE(retry.After(Lost(2), kStart + absl::Seconds(29)).ok());
  const auto end = retry.After(Lost(2), kStart + absl::Seconds(30));
  EXPECT_EQ(ErrorInfoOf(end.status()).partition, 2);
}

TEST(RetryTest, FailuresThatNameNoPartitionShareAWait) {
  Retry retry(absl::Seconds(20));
  const absl::Status lost = absl::UnavailableError("no route");
  ASSERT_TRUE(retry.After(lost, kStart).ok());
  ASSERT_TRUE(retry.After(Lost(0), kStart + absl::Seconds(19)).ok());
  const auto end = retry.After(lost, kStart + absl::Seconds(20));
  EXPECT_EQ(end.status().message(), "no route; gave up after 20s");
  EXPECT_FALSE(ErrorInfoOf(end.status()).partition.has_value());
}

TEST(RetryTest, WaitsTenMinutesForAnOverloadedServer) {
  Retry retry(absl::Seconds(20));
  const absl::Status busy =
      WithErrorInfo(absl::ResourceExhaustedError("too many batches"),
                    {.partition = 3, .retry_after = absl::Milliseconds(50)});
  ASSERT_TRUE(retry.After(busy, kStart).ok());
  ASSERT_TRUE(
      retry.After(busy, kStart + absl::Minutes(10) - absl::Seconds(1)).ok());
  const absl::Status end =
      retry.After(busy, kStart + absl::Minutes(10)).status();
  EXPECT_EQ(end.message(), "too many batches; gave up after 10m");
  EXPECT_EQ(ErrorInfoOf(end).partition, 3);
}

// A configured wait counts even if it exceeds the limit for a batch that keeps
// breaking off.
TEST(RetryTest, ALongWaitIsNotCutShort) {
  Retry retry(absl::Hours(1));
  ASSERT_TRUE(retry.After(Lost(1), kStart).ok());
  ASSERT_TRUE(retry.After(Lost(1), kStart + absl::Minutes(59)).ok());
  EXPECT_EQ(ReasonOf(retry.After(Lost(1), kStart + absl::Hours(1)).status()),
            "partition_lost");
}

TEST(RetryTest, GivesUpNamingThePartitionWhenTheWaitIsOver) {
  Retry retry(absl::Seconds(20));
  ASSERT_TRUE(retry.After(Lost(1), kStart).ok());
  ASSERT_TRUE(retry.After(Lost(1), kStart + absl::Seconds(19)).ok());
  const auto end = retry.After(Lost(1), kStart + absl::Seconds(20));
  EXPECT_EQ(end.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(end.status().message()),
      HasSubstr("connection refused; gave up on partition 1 after 20s"));
  EXPECT_EQ(ReasonOf(end.status()), "partition_lost");
}

TEST(RetryTest, OverloadDoesNotCountAsALostPartition) {
  Retry retry(absl::Seconds(20));
  const absl::Status busy =
      WithErrorInfo(absl::ResourceExhaustedError("too many batches"),
                    {.partition = {}, .retry_after = absl::Milliseconds(50)});
  ASSERT_TRUE(retry.After(busy, kStart).ok());
  ASSERT_TRUE(retry.After(busy, kStart + absl::Minutes(5)).ok());
  ASSERT_TRUE(retry.After(Lost(0), kStart + absl::Minutes(5)).ok());
  const auto end = retry.After(busy, kStart + absl::Minutes(10));
  EXPECT_EQ(end.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(end.status()), "servers_overloaded");
}

TEST(RetryTest, AnAnswerRestartsThePartitionsWait) {
  Retry retry(absl::Seconds(20));
  ASSERT_TRUE(retry.After(Lost(1), kStart).ok());
  retry.NoteAnswer(1, kStart + absl::Seconds(5));
  ASSERT_TRUE(retry.After(Lost(1), kStart + absl::Seconds(25)).ok());
  EXPECT_FALSE(retry.After(Lost(1), kStart + absl::Seconds(45)).ok());
}

TEST(RetryTest, AnswersOfOtherPartitionsDoNotExtendTheWait) {
  Retry retry(absl::Seconds(20));
  ASSERT_TRUE(retry.After(Lost(1), kStart).ok());
  retry.NoteAnswer(0, kStart + absl::Seconds(5));
  ASSERT_TRUE(retry.After(Lost(0), kStart + absl::Seconds(15)).ok());
  ASSERT_TRUE(retry.After(Lost(0), kStart + absl::Seconds(25)).ok());
  EXPECT_FALSE(retry.After(Lost(1), kStart + absl::Seconds(25)).ok());
}

// A hung server does not use up the whole wait: the rest is for a second
// attempt, on another replica if there is one.
TEST(RetryTest, SilenceCountsFromTheStartOfTheCall) {
  Retry retry(absl::Seconds(30));
  SteadyTime now = kStart;
  for (int attempt = 0; attempt < 2; ++attempt) {
    const SteadyTime start = now;
    const absl::Duration timeout = retry.TimeoutOf(absl::Minutes(1), start);
    EXPECT_EQ(timeout, absl::Seconds(attempt == 0 ? 22.5 : 7.5));
    EXPECT_EQ(retry.MaxSilenceOf(1, start), timeout);
    now += timeout;
    retry.NoteSilence(1, start);
    EXPECT_EQ(retry.After(Lost(1), now).ok(), attempt == 0);
  }
  EXPECT_EQ(now, kStart + absl::Seconds(30));
}

// A home server that waits for an owner reports it after a while.
TEST(RetryTest, AHomesWaitCountsFromTheStartOfItsCall) {
  Retry retry(absl::Seconds(10));
  retry.NoteWait(1, kStart);
  EXPECT_TRUE(retry.After(Lost(1), kStart + absl::Seconds(2)).ok());
  EXPECT_EQ(retry.TimeoutOf(absl::Minutes(1), kStart + absl::Seconds(2)),
            absl::Seconds(8));
  // No call has waited for the other partition.
  EXPECT_EQ(retry.MaxSilenceOf(0, kStart + absl::Seconds(2)),
            absl::Seconds(7.5));
  EXPECT_FALSE(retry.After(Lost(1), kStart + absl::Seconds(10)).ok());
}

TEST(RetryTest, SilenceCountsFromTheLastAnswer) {
  Retry retry(absl::Seconds(30));
  retry.NoteAnswer(1, kStart + absl::Seconds(10));
  retry.NoteSilence(1, kStart);
  EXPECT_TRUE(retry.After(Lost(1), kStart + absl::Seconds(20)).ok());
  EXPECT_TRUE(retry.After(Lost(1), kStart + absl::Seconds(39)).ok());
  EXPECT_FALSE(retry.After(Lost(1), kStart + absl::Seconds(40)).ok());
}

TEST(RetryTest, WithoutAWaitSilenceIsFinalAtOnce) {
  Retry retry(absl::ZeroDuration());
  EXPECT_EQ(retry.MaxSilenceOf(1, kStart), Retry::kMinTimeout);
  retry.NoteSilence(1, kStart);
  EXPECT_FALSE(retry.After(Lost(1), kStart + absl::Seconds(5)).ok());
}

TEST(RetryTest, CallsGetWhatIsLeftOfTheWait) {
  Retry retry(absl::Seconds(30));
  const auto timeout = [&](int second) {
    return retry.TimeoutOf(absl::Minutes(1), kStart + absl::Seconds(second));
  };
  EXPECT_EQ(timeout(7), absl::Seconds(22.5));  // no partition is waited for
  ASSERT_TRUE(retry.After(Lost(1), kStart + absl::Seconds(10)).ok());
  EXPECT_EQ(timeout(18), absl::Seconds(22));
  EXPECT_EQ(timeout(38), absl::Seconds(2));
  EXPECT_EQ(timeout(40), Retry::kMinTimeout);
  retry.NoteAnswer(1, kStart + absl::Seconds(38));
  EXPECT_EQ(timeout(38), absl::Seconds(22.5));
  EXPECT_EQ(retry.TimeoutOf(absl::Seconds(2), kStart), absl::Seconds(2));
}

// The frames of these batches take longer than the wait for a lost partition.
TEST(RetryTest, CallsThatWereCutShortGetAllTheirTime) {
  Retry retry(absl::Seconds(10));
  EXPECT_EQ(retry.TimeoutOf(absl::Minutes(1), kStart), absl::Seconds(7.5));
  retry.NoteAnswer(1, kStart + absl::Seconds(7));
  retry.NoteSilence(1, kStart);
  const SteadyTime now = kStart + absl::Seconds(8);
  EXPECT_TRUE(retry.After(Lost(1), now).ok());
  EXPECT_EQ(retry.TimeoutOf(absl::Minutes(1), now), absl::Minutes(1));
  // The allowed silence does not grow, though.
  EXPECT_EQ(retry.MaxSilenceOf(1, now), absl::Seconds(9));
}

TEST(RetryTest, AnswersBeforeTheCallDoNotCountAsCutShort) {
  Retry retry(absl::Seconds(10));
  retry.NoteAnswer(1, kStart);
  retry.NoteSilence(1, kStart);
  EXPECT_EQ(retry.TimeoutOf(absl::Minutes(1), kStart), absl::Seconds(10));
}

TEST(RetryTest, ABatchThatAlwaysBreaksOffIsGivenUp) {
  Retry retry(absl::Seconds(20));
  SteadyTime now = kStart;
  absl::Status end;
  while ((end = retry.After(Lost(1), now).status()).ok()) {
    ASSERT_LT(now, kStart + absl::Hours(1));
    retry.NoteAnswer(1, now);
    now += absl::Seconds(15);
  }
  EXPECT_EQ(now, kStart + absl::Minutes(10));
  EXPECT_TRUE(absl::IsUnavailable(end)) << end;
  EXPECT_THAT(std::string(end.message()),
              HasSubstr("calls to partition 1 kept breaking off for 10m"));
  EXPECT_EQ(ReasonOf(end), "server_breaks_off");
}

TEST(RetryTest, WarnsNowAndThenWhileAPartitionIsMissing) {
  const testing::CapturedLog log;
  // Two fetches that both fail every second for 9 s cause two warnings in all,
  // at 1 s and at 6 s.
  Retry one(absl::Seconds(20)), two(absl::Seconds(20));
  for (int second = 0; second < 10; ++second) {
    const SteadyTime now = kStart + absl::Seconds(second);
    EXPECT_TRUE(one.After(Lost(77), now).ok());
    EXPECT_TRUE(two.After(Lost(77), now).ok());
  }
  const std::vector<std::string> lines =
      absl::StrSplit(log.text(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << log.text();
  EXPECT_THAT(lines[0], EndsWith("retrying calls partition=77 seconds_left=19 "
                                 "error=\"connection refused\""));
}

}  // namespace
}  // namespace millrace
