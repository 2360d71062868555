// SPDX-License-Identifier: Apache-2.0
#include "server/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "common/wire/error_info.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(AdmissionTest, GivesBackWhatACallReserved) {
  Admission admission(100);
  {
    auto first = admission.Reserve(1, 60);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(admission.in_use(), 60u);
    Admission::Reservation moved = *std::move(first);
    EXPECT_TRUE(moved.GrowTo(90).ok());
    EXPECT_TRUE(moved.GrowTo(10).ok());  // never shrinks
    EXPECT_EQ(admission.in_use(), 90u);
  }
  EXPECT_EQ(admission.in_use(), 0u);
}

TEST(AdmissionTest, RefusesForEverWhatCanNeverFit) {
  Admission admission(100);
  auto call = admission.Reserve(1, 50);
  ASSERT_TRUE(call.ok());
  const absl::Status status = call->GrowTo(101);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("101"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("100"));
  EXPECT_FALSE(IsRetryable(status));
}

TEST(AdmissionTest, RefusesForNowWhatOthersHold) {
  Admission admission(100);
  auto first = admission.Reserve(1, 60);
  const absl::Status status = admission.Reserve(2, 50).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_TRUE(IsRetryable(status));
  EXPECT_GT(ErrorInfoOf(status).retry_after, absl::ZeroDuration());
  *first = {};
  EXPECT_TRUE(admission.Reserve(2, 50).ok());
}

TEST(AdmissionTest, ReservesWhatTheJobUsedToNeed) {
  Admission admission(1000);
  {
    auto call = admission.Reserve(7, 10);
    ASSERT_TRUE(call->GrowTo(400).ok());
    ASSERT_TRUE(call->Settle(50).ok());
    EXPECT_EQ(admission.in_use(), 50u);
  }
  auto again = admission.Reserve(7, 10);
  EXPECT_EQ(again->bytes(), 400u);
  EXPECT_EQ(admission.Reserve(8, 10)->bytes(), 10u);
  // A job that needs less than it used to is believed little by little.
  ASSERT_TRUE(again->Settle(20).ok());
  *again = {};
  const uint64_t later = admission.Reserve(7, 10)->bytes();
  EXPECT_LT(later, 400u);
  EXPECT_GT(later, 20u);
}

TEST(AdmissionTest, SettlesBeyondWhatWasReservedWithinTheLimit) {
  Admission admission(100);
  auto call = admission.Reserve(1, 40);
  ASSERT_TRUE(call.ok());
  EXPECT_TRUE(call->Settle(70).ok());
  EXPECT_EQ(admission.in_use(), 70u);
  auto other = admission.Reserve(2, 20);
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
  auto call = admission.Reserve(0, 60);
  ASSERT_TRUE(call.ok());
  EXPECT_THAT(std::string(admission.Reserve(0, 50).status().message()),
              HasSubstr("60 of 100 bytes are in use, this leaf call needs 50"));
  EXPECT_THAT(std::string(call->GrowTo(101).message()),
              HasSubstr("the leaf call needs 101 bytes"));
}

}  // namespace
}  // namespace millrace
