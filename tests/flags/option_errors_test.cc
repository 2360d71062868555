// SPDX-License-Identifier: Apache-2.0
#include "client/flags/option_errors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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
            UsageError("--exclude-seed-edges and --seeds node cannot be used "
                       "together\nleave one out"));
  EXPECT_EQ(InTermsOfOptions(status), status);
}

TEST(OptionErrorsTest, SaysWhatToDo) {
  const absl::Status status = InTermsOfOptions(
      FieldStatus(absl::StatusCode::kFailedPrecondition,
                  {.field = "weighted", .limit = "there are no weights"}));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "--weighted: there are no weights\nimport the dataset with "
            "--edge-weights SRC__NAME__DST=F.npy and partition it again");
}

constexpr auto kInvalidCode = absl::StatusCode::kInvalidArgument;
constexpr auto kLackingCode = absl::StatusCode::kFailedPrecondition;
constexpr auto kRangeCode = absl::StatusCode::kOutOfRange;

// An error and how its advice begins.
struct AdvisedError {
  std::string field;
  absl::StatusCode code;
  Problem problem;
  std::string advice;
};

std::string AdviceOf(const std::string& field, absl::StatusCode code,
                     Problem problem) {
  const absl::Status status = InTermsOfOptions(FieldStatus(
      code, {.problem = problem, .field = field, .value = "1", .limit = "2"}));
  const std::string message(status.message());
  const size_t line = message.find('\n');
  return line == message.npos ? "" : message.substr(line + 1);
}

TEST(OptionErrorsTest, EachErrorHasItsAdvice) {
  const std::vector<AdvisedError> errors = {
      {"fanouts", kInvalidCode, Problem::kOutOfRange,
       "give a number for each hop; -1 takes each neighbour once"},
      {"fanouts", kRangeCode, Problem::kTooMuch,
       "use a smaller --batch-size or smaller --fanouts"},
      {"batch_size", kRangeCode, Problem::kTooMuch,
       "use a smaller --batch-size or smaller --fanouts"},
      {"negatives", kRangeCode, Problem::kTooMuch,
       "use a smaller --batch-size or --negatives"},
      {"walks", kRangeCode, Problem::kTooMuch,
       "use a smaller --batch-size or --walks"},
      {"direction", kLackingCode, Problem::kInvalid,
       "make a store that has them: millrace partition DATASET --directions "
       "both"},
      {"weighted", kLackingCode, Problem::kInvalid,
       "import the dataset with --edge-weights SRC__NAME__DST=F.npy"},
      {"temporal", kLackingCode, Problem::kInvalid,
       "import the dataset with --edge-times F.npy or --node-times F.npy"},
      {"temporal", kInvalidCode, Problem::kInvalid,
       "give them in --seeds-file [n, 2] (for edges, [n, 3])"},
      {"temporal", kInvalidCode, Problem::kMissing,
       "give --temporal uniform or last, or leave the times out"},
      {"method", kLackingCode, Problem::kInvalid,
       "make a store that has them: millrace partition DATASET "
       "--neighbor-original-ids"},
      {"method", kInvalidCode, Problem::kInvalid,
       "name it: --metapath SRC__NAME__DST"},
      {"metapath", kInvalidCode, Problem::kMissing,
       "name the relations that a walk follows, in turn"},
      {"metapath", kInvalidCode, Problem::kInvalid,
       "name relations that connect end to end"},
      {"seed_type", kInvalidCode, Problem::kMissing,
       "name the seeds' type: --type TYPE"},
      {"seed_kind", kInvalidCode, Problem::kInvalid,
       "import a collection of graphs: millrace import tu"},
      {"seed_order", kInvalidCode, Problem::kInvalid,
       "make one with `millrace split`, or use --seed-order global"},
      {"train_graph", absl::StatusCode::kNotFound, Problem::kInvalid,
       "name one of these, or leave --train-graph out"},
      {"train_graph", kInvalidCode, Problem::kInvalid,
       "sample a relation that does, name another split"},
      {"edge_features", kLackingCode, Problem::kInvalid,
       "import the dataset with --edge-features F.npy"},
      {"split", absl::StatusCode::kNotFound, Problem::kInvalid,
       "name one with --split, make one with `millrace split`"},
      {"store", kInvalidCode, Problem::kMissing, "give --store or --servers"},
      {"cache_ratio", kInvalidCode, Problem::kInvalid, "leave it out"},
      {"cache_ratio", kLackingCode, Problem::kInvalid,
       "use a smaller --cache-ratio, fewer processes on this host"},
      {"max_inflight_bytes", kLackingCode, Problem::kTooMuch,
       "use a smaller --batch-size or smaller --fanouts, or start the servers"},
      {"peers", kLackingCode, Problem::kMissing,
       "start that server with --peers LIST"}};
  for (const AdvisedError& error : errors) {
    const std::string advice = AdviceOf(error.field, error.code, error.problem);
    EXPECT_EQ(advice.substr(0, error.advice.size()), error.advice)
        << error.field;
    // Only an error that is the same in all three has it.
    EXPECT_EQ(AdviceOf("lr", error.code, error.problem), "");
    EXPECT_EQ(AdviceOf(error.field, absl::StatusCode::kInternal, error.problem),
              "");
  }
  EXPECT_EQ(AdviceOf("fanouts", kInvalidCode, Problem::kInvalid), "");
  EXPECT_EQ(AdviceOf("batch_size", kInvalidCode, Problem::kConflict),
            "leave one out");
  EXPECT_EQ(AdviceOf("batch_size", kInvalidCode, Problem::kNeeds),
            "give both, or leave --batch-size out");
}

TEST(OptionErrorsTest, OptionsOfOtherNamesAreKnown) {
  EXPECT_EQ(OptionOfField("aggregation"), "--aggr");
  EXPECT_EQ(OptionOfField("average_degree"), "--avg-degree");
  EXPECT_EQ(OptionOfField("bases"), "--num-bases");
  EXPECT_EQ(OptionOfField("node_counts"), "--num-nodes");
  EXPECT_EQ(OptionOfField("predict_embeddings"), "--output embeddings");
  EXPECT_EQ(OptionOfField("seeds"), "--seeds-file");
  EXPECT_EQ(OptionOfField("seed_type"), "--type");
  EXPECT_EQ(OptionOfField("exclude"), "--exclude-seed-edges");
}

TEST(OptionErrorsTest, OnlyErrorsOfUsageAreWrongUsage) {
  const auto usage = [](absl::StatusCode code, bool field) {
    return IsUsageError(InTermsOfOptions(
        field ? FieldStatus(code, {.field = "lr", .limit = "no"})
              : WithReason(absl::Status(code, "no"), Reason{"why"})));
  };
  EXPECT_TRUE(usage(kInvalidCode, true));
  EXPECT_TRUE(usage(absl::StatusCode::kUnimplemented, true));
  EXPECT_FALSE(usage(kLackingCode, true));
  EXPECT_FALSE(usage(kInvalidCode, false));
}

TEST(OptionErrorsTest, ErrorsOfServersHaveAdvice) {
  const auto advice = [](std::string_view reason) {
    return std::string(InTermsOfOptions(WithReason(absl::UnavailableError("x"),
                                                   Reason{reason}))
                           .message());
  };
  EXPECT_EQ(advice("server_breaks_off"),
            "x\nsee the messages of that server, or `millrace status --servers "
            "LIST`");
  EXPECT_EQ(
      advice("servers_overloaded"),
      "x\nadd servers, raise their --max-inflight-bytes, or use a smaller "
      "--prefetch-batches");
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
            UsageError("--num-bases and --seeds-file cannot be used together\n"
                       "raise --heat"));
  EXPECT_EQ(InTermsOfOptions(WithAdvice(cold, "go"), kOwn),
            absl::InvalidArgumentError("no flame\ngo"));
  EXPECT_EQ(InTermsOfOptions(WithReason(absl::UnavailableError("server a"),
                                        Reason{"partition_lost"}))
                .message(),
            "server a\nstart a server for that partition (see `millrace status "
            "--servers LIST`), or wait longer with --partition-wait");
}

// Whichever option chose the rule that reads the column.
TEST(OptionErrorsTest, ColumnsThatAStoreLacksHaveTheirOwnAdvice) {
  const auto message = [](Reason reason) {
    return std::string(InTermsOfOptions(FieldStatus(kLackingCode,
                                                    {.field = "method",
                                                     .value = "new",
                                                     .limit = "there are none"},
                                                    reason))
                           .message());
  };
  EXPECT_EQ(message(Reason{"no_weights"}),
            "--method new: there are none\nimport the dataset with "
            "--edge-weights SRC__NAME__DST=F.npy and partition it again");
  EXPECT_EQ(message(Reason{"no_neighbor_ids"}),
            "--method new: there are none\nmake a store that has them: "
            "millrace partition DATASET --neighbor-original-ids ...");
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
