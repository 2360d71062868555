// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/base/field_error.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

TEST(JobOptionsTest, NamesAndOptionsAreUnique) {
  std::set<std::string_view> names, options;
  for (const JobOption& option : JobOptions()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(options.insert(option.option).second) << option.option;
    EXPECT_EQ(FindJobOption(option.name), &option);
  }
  EXPECT_EQ(FindJobOption("batch-size"), nullptr);
}

TEST(JobOptionsTest, ADefaultJobBreaksNoRule) {
  EXPECT_TRUE(CheckJobOptions(JobSpec()).ok());
  for (const JobOption& option : JobOptions()) {
    EXPECT_TRUE(HasDefault(JobSpec(), option)) << option.name;
  }
}

TEST(JobOptionsTest, ErrorsNameFieldValueAndLimit) {
  JobSpec spec;
  spec.batch_size = 0;
  const std::optional<FieldError> error = GetFieldError(CheckJobOptions(spec));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->problem, FieldError::Problem::kOutOfRange);
  EXPECT_EQ(error->field, "batch_size");
  EXPECT_EQ(error->value, "0");
  EXPECT_EQ(error->limit, "1 to 1073741824");
}

// Checkpoints of versions that had fewer fields must stay valid.
TEST(JobOptionsTest, IdentityOfADefaultJobDoesNotChange) {
  const auto identity = JobIdentity(JobSpec());
  std::vector<std::string> texts;
  for (const auto& [option, text] : identity) {
    texts.push_back(std::string(option) + "=" + text);
  }
  EXPECT_THAT(texts, ElementsAre("batch-size=1024", "direction=in",
                                 "disjoint=no", "drop-last=no",
                                 "fanouts=", "method=uniform", "replace=no",
                                 "seed=1", "seed-order=global", "seeds=node",
                                 "shuffle=yes", "split=train", "temporal=none",
                                 "train-graph=full", "type=", "weighted=no"));
}

TEST(JobOptionsTest, IdentityTellsJobsApart) {
  JobSpec spec;
  spec.method = SampleMethod::kPpr;
  spec.walks = 3;
  spec.walk_length = 4;
  spec.metapath = {"a__x__a"};
  EXPECT_EQ(JobIdentity(spec)["method"], "ppr 3 of 4 a__x__a restart 0.15");
  spec.method = SampleMethod::kWalk;
  spec.walk_q = 0.5;
  EXPECT_EQ(JobIdentity(spec)["method"], "walk 3 of 4 a__x__a");
  EXPECT_EQ(JobIdentity(spec)["walk-q"], "0.5");
  EXPECT_FALSE(JobIdentity(spec).contains("walk-p"));
  spec.seed_kind = SeedKind::kEdge;
  spec.negatives = {NegativeMode::kBinary, 1.5};
  spec.relation_fanouts["a__x__a"] = {1, -1};
  spec.train_graph = "train";
  EXPECT_EQ(JobIdentity(spec)["negatives"], "binary:1.5");
  EXPECT_EQ(JobIdentity(spec)["exclude-seed-edges"], "none");
  EXPECT_EQ(JobIdentity(spec)["fanouts"], " a__x__a=1,-1");
  EXPECT_EQ(JobIdentity(spec)["train-graph"], "induced:train");
}

TEST(JobOptionsTest, ReadsFanouts) {
  EXPECT_THAT(*ParseFanouts("15, 10,-1"), ElementsAre(15, 10, -1));
  for (const char* text : {"", "15,", "a", "15;10", "-2", "99999999999"}) {
    const absl::Status status = ParseFanouts(text, "eval_fanouts").status();
    ASSERT_TRUE(GetFieldError(status).has_value()) << text;
    EXPECT_EQ(GetFieldError(status)->field, "eval_fanouts");
  }
}

TEST(JobOptionsTest, ReadsNegatives) {
  for (const char* text :
       {"none", "binary:1.5", "triplet:2", "shared:7", "in-batch"}) {
    const std::string given = std::string(text) == "none" ? "" : text;
    const auto negatives = ParseNegatives(given);
    ASSERT_TRUE(negatives.ok()) << negatives.status();
    EXPECT_EQ(FormatNegatives(*negatives), text);
  }
  for (const char* text :
       {"none", "binary", "binary:", "binary:x", "in-batch:2", "all:1"}) {
    EXPECT_FALSE(ParseNegatives(text).ok()) << text;
  }
}

}  // namespace
}  // namespace millrace
