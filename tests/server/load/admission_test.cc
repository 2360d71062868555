// SPDX-License-Identifier: Apache-2.0
#include "server/load/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/wire/error_info.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Calls of several clients that hold memory, and the calls that were ended.
class Calls {
 public:
  explicit Calls(uint64_t limit,
                 absl::Duration stalled_after = Admission::kStalledAfter)
      : admission_(limit, "batch", stalled_after) {}

  absl::StatusOr<Admission::Reservation> Reserve(const std::string& client,
                                                 const std::string& name,
                                                 uint64_t bytes) {
    return admission_.Reserve(
        {.client = client, .end = [this, name] { ended_.push_back(name); }},
        /*job=*/0, bytes);
  }
  // The same for a stream that waits for its reader.
  Admission::Reservation Waiting(const std::string& client,
                                 const std::string& name, uint64_t bytes) {
    auto call = Reserve(client, name, bytes);
    EXPECT_TRUE(call.ok()) << call.status();
    call->StartWaiting();
    return *std::move(call);
  }

  Admission& admission() { return admission_; }
  const std::vector<std::string>& ended() const { return ended_; }

 private:
  Admission admission_;
  std::vector<std::string> ended_;
};

absl::StatusOr<Admission::Reservation> Reserve(Admission& admission,
                                               uint64_t job, uint64_t bytes) {
  return admission.Reserve({.client = "client", .end = [] {}}, job, bytes);
}

TEST(AdmissionTest, GivesBackWhatACallReserved) {
  Admission admission(100);
  {
    auto first = Reserve(admission, 1, 60);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(admission.in_use(), 60u);
    Admission::Reservation moved = *std::move(first);
    EXPECT_TRUE(moved.GrowTo(90).ok());
    EXPECT_TRUE(moved.GrowTo(10).ok());  // never shrinks
    EXPECT_EQ(admission.in_use(), 90u);
  }
  EXPECT_EQ(admission.in_use(), 0u);
}

TEST(AdmissionTest, PermanentlyRefusesWhatCanNeverFit) {
  Admission admission(100);
  auto call = Reserve(admission, 1, 50);
  ASSERT_TRUE(call.ok());
  const absl::Status status = call->GrowTo(101);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("101"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("100"));
  EXPECT_FALSE(IsRetryable(status));
}

TEST(AdmissionTest, TemporarilyRefusesWhatOthersHold) {
  Admission admission(100);
  auto first = Reserve(admission, 1, 60);
  const absl::Status status = Reserve(admission, 2, 50).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_TRUE(IsRetryable(status));
  EXPECT_GT(ErrorInfoOf(status).retry_after, absl::ZeroDuration());
  *first = {};
  EXPECT_TRUE(Reserve(admission, 2, 50).ok());
}

TEST(AdmissionTest, ReservesTheJobsAverage) {
  Admission admission(1000);
  {
    auto call = Reserve(admission, 7, 10);
    ASSERT_TRUE(call->GrowTo(400).ok());
    ASSERT_TRUE(call->Settle(50).ok());
    EXPECT_EQ(admission.in_use(), 50u);
  }
  auto again = Reserve(admission, 7, 10);
  EXPECT_EQ(again->bytes(), 400u);
  EXPECT_EQ(Reserve(admission, 8, 10)->bytes(), 10u);
  // The average follows a job that needs less than it used to only gradually.
  ASSERT_TRUE(again->Settle(20).ok());
  *again = {};
  const uint64_t later = Reserve(admission, 7, 10)->bytes();
  EXPECT_LT(later, 400u);
  EXPECT_GT(later, 20u);
}

// Otherwise one batch beyond the limit would cause the job to be refused
// forever.
TEST(AdmissionTest, ReservesNoMoreThanTheLimitForAJob) {
  Admission admission(100);
  {
    auto large = Reserve(admission, 1, 10);
    ASSERT_TRUE(large.ok()) << large.status();
    EXPECT_TRUE(absl::IsFailedPrecondition(large->Settle(150)));
  }
  const auto next = Reserve(admission, 1, 10);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(admission.in_use(), 100u);
}

TEST(AdmissionTest, MaySettleAboveTheReservationWithinTheLimit) {
  Admission admission(100);
  auto call = Reserve(admission, 1, 40);
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(call->Settle(70).ok());
  EXPECT_EQ(admission.in_use(), 70u);
  auto other = Reserve(admission, 2, 20);
  ASSERT_TRUE(other.ok());
  const absl::Status busy = call->Settle(90);
  EXPECT_TRUE(absl::IsResourceExhausted(busy)) << busy;
  EXPECT_THAT(std::string(busy.message()), HasSubstr("of 100 bytes"));
  EXPECT_EQ(admission.in_use(), 90u);
  EXPECT_TRUE(absl::IsFailedPrecondition(call->Settle(101)));
  *call = {};
  *other = {};
  EXPECT_EQ(admission.in_use(), 0u);
}

TEST(AdmissionTest, ErrorsSayWhatIsTooLarge) {
  Admission admission(100, "leaf call");
  auto call = Reserve(admission, 0, 60);
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(std::string(Reserve(admission, 0, 50).status().message()),
              HasSubstr("60 of 100 bytes are in use, this leaf call needs 50"));
  EXPECT_THAT(std::string(call->GrowTo(101).message()),
              HasSubstr("the leaf call needs 101 bytes"));
}

TEST(AdmissionTest, EndsTheStreamThatWaitedLongestForAClientBelowItsShare) {
  Calls calls(100);
  const auto first = calls.Waiting("greedy", "first", 30);
  const auto second = calls.Waiting("greedy", "second", 30);
  const auto third = calls.Waiting("greedy", "third", 40);
  const auto good = calls.Reserve("good", "good", 50);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(calls.ended(), ElementsAre("first", "second"));
  // Until the ended calls are gone, they still hold their memory.
  EXPECT_EQ(calls.admission().in_use(), 150u);
}

TEST(AdmissionTest, EndedCallsGetNoMoreMemoryAndGiveTheirsBack) {
  Calls calls(100);
  auto first = calls.Waiting("greedy", "first", 100);
  {
    const auto good = calls.Reserve("good", "good", 50);
    ASSERT_TRUE(good.ok()) << good.status();
    EXPECT_TRUE(first.Settle(20).ok());
    const absl::Status status = first.GrowTo(30);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_TRUE(IsRetryable(status));
    EXPECT_EQ(calls.admission().in_use(), 70u);
    first = {};
    EXPECT_EQ(calls.admission().in_use(), 50u);
  }
  EXPECT_EQ(calls.admission().in_use(), 0u);
  EXPECT_TRUE(calls.Reserve("greedy", "again", 100).ok());
}

TEST(AdmissionTest, EndsNothingForAClientBeyondItsShare) {
  Calls calls(100);
  const auto other = calls.Waiting("other", "other", 60);
  const auto call = calls.Reserve("good", "good", 51);
  EXPECT_TRUE(absl::IsResourceExhausted(call.status())) << call.status();
  EXPECT_THAT(calls.ended(), IsEmpty());
}

// A call larger than a share may have to wait as long as others are busy.
TEST(AdmissionTest, SaysWhatToDoAboutACallAboveTheShare) {
  Calls calls(100);
  auto other = calls.Waiting("other", "other", 45);
  const auto first = calls.Reserve("good", "first", 40);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status within = calls.Reserve("good", "small", 30).status();
  EXPECT_TRUE(absl::IsResourceExhausted(within)) << within;
  EXPECT_THAT(std::string(within.message()), Not(HasSubstr("fair share")));
  const absl::Status above = calls.Reserve("good", "large", 60).status();
  EXPECT_TRUE(absl::IsResourceExhausted(above)) << above;
  EXPECT_TRUE(IsRetryable(above));
  EXPECT_THAT(std::string(above.message()),
              HasSubstr("needs 60 more and 60 in all, above the client's fair "
                        "share of 50"));
  EXPECT_THAT(std::string(above.message()),
              HasSubstr("a larger max_inflight_bytes"));
}

TEST(AdmissionTest, EndsTheClientsOwnLongStalledStreams) {
  Calls calls(100, /*stalled_after=*/absl::ZeroDuration());
  const auto other = calls.Waiting("other", "other", 10);
  const auto own = calls.Waiting("good", "own", 50);
  const auto call = calls.Reserve("good", "good", 90);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(calls.ended(), ElementsAre("own"));
}

TEST(AdmissionTest, EndsStalledStreamsOfGreedyClientsForAnyClient) {
  Calls calls(100, /*stalled_after=*/absl::ZeroDuration());
  const auto other = calls.Waiting("other", "other", 60);
  const auto call = calls.Reserve("good", "good", 70);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(calls.ended(), ElementsAre("other"));
}

// Clients within their share keep their calls, however long these have waited.
TEST(AdmissionTest, LeavesClientsWithinTheirShareAlone) {
  Calls calls(100, /*stalled_after=*/absl::ZeroDuration());
  const auto modest = calls.Waiting("modest", "modest", 10);
  auto greedy = calls.Waiting("greedy", "greedy", 90);
  greedy.StopWaiting();
  EXPECT_FALSE(greedy.GrowTo(100).ok());
  EXPECT_THAT(calls.ended(), IsEmpty());
  const auto good = calls.Reserve("good", "good", 10);
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(calls.ended(), ElementsAre("greedy"));
}

TEST(AdmissionTest, EndsTheNewestCallIfNoneWaitsForItsReader) {
  Calls calls(100);
  auto working = calls.Waiting("greedy", "working", 60);
  working.StopWaiting();
  const auto newest = calls.Reserve("greedy", "newest", 30);
  const auto waiting = calls.Waiting("greedy", "waiting", 10);
  const auto call = calls.Reserve("good", "good", 20);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(calls.ended(), ElementsAre("waiting", "newest"));
}

TEST(AdmissionTest, LeavesGreedyClientsTheirShare) {
  Calls calls(120);
  const auto a1 = calls.Waiting("a", "a1", 20);
  const auto a2 = calls.Waiting("a", "a2", 40);
  const auto b1 = calls.Waiting("b", "b1", 20);
  const auto b2 = calls.Waiting("b", "b2", 40);
  const auto call = calls.Reserve("good", "good", 40);
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_THAT(calls.ended(), ElementsAre("a1", "b1"));
}

// Ending some calls gains nothing if ending all of them would not be enough.
TEST(AdmissionTest, EndsNothingIfThatWouldNotFreeEnough) {
  Calls calls(100, /*stalled_after=*/absl::ZeroDuration());
  const auto working = calls.Reserve("other", "working", 50);
  const auto stalled = calls.Waiting("good", "stalled", 50);
  const auto call = calls.Reserve("good", "good", 60);
  EXPECT_TRUE(absl::IsResourceExhausted(call.status())) << call.status();
  EXPECT_THAT(calls.ended(), IsEmpty());
}

// Calls that were ended keep their memory until their streams are gone.
TEST(AdmissionTest, EndsNoMoreThanItsLimitAtOnce) {
  Calls calls(100);
  auto a = std::make_optional(calls.Waiting("a", "a", 100));
  const auto b = calls.Waiting("b", "b", 50);
  const auto c = calls.Waiting("c", "c", 50);
  EXPECT_THAT(calls.ended(), ElementsAre("a"));
  EXPECT_EQ(calls.admission().in_use(), 200u);
  const absl::Status early = calls.Reserve("d", "d", 25).status();
  EXPECT_TRUE(absl::IsResourceExhausted(early)) << early;
  EXPECT_THAT(calls.ended(), ElementsAre("a"));
  a.reset();
  EXPECT_TRUE(calls.Reserve("d", "d", 25).ok());
  EXPECT_THAT(calls.ended(), ElementsAre("a", "b"));
}

TEST(AdmissionTest, HoldsTwiceItsLimitAtMostWhileCallsEnd) {
  Calls calls(100);
  std::vector<Admission::Reservation> held;
  int admitted = 0;
  for (int i = 0; i < 100; ++i) {
    auto call = calls.Reserve(StrCat("client ", i), "", 25);
    if (!call.ok()) continue;
    call->StartWaiting();
    held.push_back(*std::move(call));
    ++admitted;
    EXPECT_LE(calls.admission().in_use(), 200u);
  }
  EXPECT_GE(admitted, 4);
}

TEST(AdmissionTest, ErrorsNameTheFieldTheNeedAndTheLimit) {
  Admission admission(100, "leaf call");
  auto call = Reserve(admission, 0, 60);
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call->bytes(), 60u);
  const absl::Status never = call->GrowTo(101);
  EXPECT_EQ(never.message(),
            "the leaf call needs 101 bytes on the server; the limit is 100");
  EXPECT_EQ(GetFieldError(never)->field, "max_inflight_bytes");
  EXPECT_EQ(Reserve(admission, 0, 41).status().message(),
            "the server is busy: 60 of 100 bytes are in use, this leaf call "
            "needs 41 more");
  EXPECT_TRUE(Reserve(admission, 0, 40).ok());
  EXPECT_EQ(call->GrowTo(100), absl::OkStatus());
  EXPECT_EQ(admission.in_use(), 100u);
}

}  // namespace
}  // namespace millrace
