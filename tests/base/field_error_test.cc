// SPDX-License-Identifier: Apache-2.0
#include "common/base/field_error.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

using Problem = FieldError::Problem;

std::string Shouted(std::string_view field) {
  return absl::StrCat("<", std::string(field), ">");
}

TEST(FieldErrorTest, EachProblemReadsAsASentence) {
  const std::vector<std::pair<FieldError, std::string>> texts = {
      {{.field = "method", .value = "ppr", .limit = "no"}, "<method> ppr: no"},
      {{.field = "method", .limit = "no"}, "<method>: no"},
      {{.problem = Problem::kOutOfRange,
        .field = "walks",
        .value = "0",
        .limit = "1 to 9"},
       "<walks> 0 is out of range: 1 to 9"},
      {{.problem = Problem::kMissing, .field = "type", .limit = "two"},
       "<type> is needed: two"},
      {{.problem = Problem::kConflict,
        .field = "replace",
        .other_field = "method",
        .other_value = "labor"},
       "<replace> and <method> labor cannot be used together"},
      {{.problem = Problem::kNeeds,
        .field = "walks",
        .other_field = "method",
        .other_value = "walk"},
       "<walks> needs <method> walk"},
      {{.problem = Problem::kTooMuch,
        .field = "batch_size",
        .value = "5 nodes",
        .limit = "4"},
       "5 nodes; the limit is 4"},
  };
  for (const auto& [error, text] : texts) {
    EXPECT_EQ(ToText(error, Shouted), text);
  }
}

TEST(FieldErrorTest, ReasonsStayWithTheirErrors) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), "");
  EXPECT_EQ(WithReason(absl::OkStatus(), Reason{"cold"}), absl::OkStatus());
  const absl::Status plain = absl::NotFoundError("no flame");
  EXPECT_EQ(WithReason(plain, {}), plain);
  const absl::Status cold = WithReason(plain, Reason{"cold"});
  EXPECT_EQ(cold.message(), plain.message());
  EXPECT_EQ(ReasonOf(cold), "cold");
  EXPECT_FALSE(HasAdvice(cold));
  const absl::Status advised = WithAdvice(cold, "light it");
  EXPECT_TRUE(HasAdvice(advised));
  EXPECT_EQ(ReasonOf(advised), "cold");
}

TEST(FieldErrorTest, ReasonsAreKeptBesideTheField) {
  const absl::Status field =
      InvalidField({.field = "lr", .limit = "no"}, Reason{"cold"});
  EXPECT_EQ(ReasonOf(field), "cold");
  EXPECT_EQ(GetFieldError(field)->field, "lr");
  EXPECT_EQ(ReasonOf(WithNames(field, Shouted)), "cold");
  // A reason alone does not make an error a usage error.
  EXPECT_FALSE(IsUsageError(
      WithReason(absl::InvalidArgumentError("no"), Reason{"cold"})));
}

TEST(FieldErrorTest, SurvivesAStatusUnchanged) {
  const FieldError error = {.problem = Problem::kConflict,
                            .field = "a:b",
                            .value = std::string("1:2\0\n", 5),
                            .limit = "",
                            .other_field = "9:",
                            .other_value = "\xff"};
  absl::Status status = absl::NotFoundError("nothing");
  EXPECT_FALSE(GetFieldError(status).has_value());
  SetFieldError(error, status);
  EXPECT_EQ(GetFieldError(status), error);
  EXPECT_EQ(GetFieldError(Reworded(status, "other words")), error);
  EXPECT_EQ(Reworded(status, "other words").message(), "other words");
}

TEST(FieldErrorTest, TakesOtherNamesAndAdvice) {
  const absl::Status error = InvalidField(
      {.problem = Problem::kNeeds, .field = "p", .other_field = "method"});
  EXPECT_EQ(WithAdvice(WithNames(error, Shouted), "leave it out"),
            Reworded(error, "<p> needs <method>\nleave it out"));
  EXPECT_EQ(WithNames(Reworded(error, "server a: p needs method"), Shouted),
            Reworded(error, "server a: <p> needs <method>"));
  for (const absl::Status& other :
       {absl::OkStatus(), absl::NotFoundError("p"), UsageError("--p"),
        Reworded(error, "said otherwise")}) {
    EXPECT_EQ(WithNames(other, Shouted), other);
  }
}

TEST(FieldErrorTest, OtherPayloadsAreIgnored) {
  for (const char* payload :
       {"", ":", "x:", "7:0:0:0:0:0:", "0:", "0:0:0:0:0:", "0:0:0:0:0:9:",
        "0:99999999999999999999:", "-1:0:0:0:0:0:"}) {
    absl::Status status = absl::InvalidArgumentError("no");
    status.SetPayload("millrace/FieldError", absl::Cord(payload));
    EXPECT_FALSE(GetFieldError(status).has_value()) << payload;
  }
}

// Only these end a program with the status of wrong usage.
TEST(FieldErrorTest, UsageErrorsAreAboutOptions) {
  EXPECT_TRUE(IsUsageError(UsageError("--lr is needed")));
  EXPECT_TRUE(IsUsageError(UnsupportedError("--lr 7 is not served")));
  EXPECT_TRUE(IsUsageError(InvalidField({.field = "lr", .limit = "no"})));
  EXPECT_FALSE(IsUsageError(absl::InvalidArgumentError("--lr is needed")));
  EXPECT_FALSE(IsUsageError(FieldStatus(absl::StatusCode::kNotFound,
                                        {.field = "split", .limit = "no"})));
  EXPECT_FALSE(IsUsageError(AsUsageError(absl::NotFoundError("--init: no"))));
}

}  // namespace
}  // namespace millrace
