// SPDX-License-Identifier: Apache-2.0
#include "client/flags/option_errors.h"

#include <gtest/gtest.h>

#include "common/base/field_error.h"

namespace millrace {
namespace {

using Problem = FieldError::Problem;

TEST(OptionErrorsTest, FieldsBecomeOptions) {
  EXPECT_EQ(OptionOfField("batch_size"), "--batch-size");
  EXPECT_EQ(OptionOfField("seed_kind"), "--seeds");
  EXPECT_EQ(OptionOfField("prefetch_batches"), "--prefetch-batches");
  const absl::Status status =
      InTermsOfOptions(InvalidField({.problem = Problem::kConflict,
                                     .field = "exclude",
                                     .other_field = "seed_kind",
                                     .other_value = "node"}));
  EXPECT_EQ(status,
            UsageError("--exclude-seed-edges and --seeds node exclude each "
                       "other\nleave one out"));
  EXPECT_EQ(InTermsOfOptions(status), status);
}

TEST(OptionErrorsTest, SaysWhatToDo) {
  const absl::Status status = InTermsOfOptions(
      FieldStatus(absl::StatusCode::kFailedPrecondition,
                  {.field = "weighted", .limit = "there are no weights"}));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "--weighted: there are no weights\nimport the dataset with "
            "--edge-weights SRC__REL__DST=F.npy and partition it again");
}

TEST(OptionErrorsTest, KeepsContextAddedByCallers) {
  absl::Status status = absl::OutOfRangeError(
      "server a: 5 nodes; the limit is 4, in hop 3\nask for less");
  SetFieldError({.problem = Problem::kTooMuch,
                 .field = "batch_size",
                 .value = "5 nodes",
                 .limit = "4"},
                status);
  EXPECT_EQ(InTermsOfOptions(status).message(), status.message());
  status = Reworded(InvalidField({.problem = Problem::kOutOfRange,
                                  .field = "walk_length",
                                  .value = "0",
                                  .limit = "1 to 9"}),
                    "server a: walk_length 0 is out of range: 1 to 9");
  EXPECT_EQ(InTermsOfOptions(status).message(),
            "server a: --walk-length 0 is out of range: 1 to 9");
}

TEST(OptionErrorsTest, ReasonsHaveTheProgramsAdvice) {
  constexpr ReasonAdvice kOwn[] = {{{"too_cold"}, "raise --heat"}};
  const absl::Status cold =
      WithReason(absl::InvalidArgumentError("no flame"), Reason{"too_cold"});
  EXPECT_EQ(InTermsOfOptions(cold, kOwn),
            absl::InvalidArgumentError("no flame\nraise --heat"));
  EXPECT_EQ(InTermsOfOptions(cold), absl::InvalidArgumentError("no flame"));
  // A reason takes precedence over the field, and the message's own advice over
  // both.
  EXPECT_EQ(InTermsOfOptions(InvalidField({.problem = Problem::kConflict,
                                           .field = "bases",
                                           .other_field = "seeds"},
                                          Reason{"too_cold"}),
                             kOwn),
            UsageError("--num-bases and --seeds-file exclude each other\n"
                       "raise --heat"));
  EXPECT_EQ(InTermsOfOptions(WithAdvice(cold, "go"), kOwn),
            absl::InvalidArgumentError("no flame\ngo"));
  EXPECT_EQ(InTermsOfOptions(WithReason(absl::UnavailableError("server a"),
                                        Reason{"partition_lost"}))
                .message(),
            "server a\nstart a server of that partition, see `millrace status "
            "--servers LIST`, or wait longer with --partition-wait");
}

TEST(OptionErrorsTest, LeavesOtherErrorsAlone) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::InvalidArgumentError("edges.csv: line 8"),
        UsageError("--lr is needed")}) {
    EXPECT_EQ(InTermsOfOptions(status), status);
  }
}

}  // namespace
}  // namespace millrace
