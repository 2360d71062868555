// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/field_error.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

TEST(JobTextsTest, ReadsFanouts) {
  EXPECT_THAT(*ParseFanouts("15, 10,-1"), ElementsAre(15, 10, -1));
  for (const char* text : {"", "15,", "a", "15;10", "-2", "99999999999"}) {
    const absl::Status status = ParseFanouts(text, "eval_fanouts").status();
    ASSERT_TRUE(GetFieldError(status).has_value()) << text;
    EXPECT_EQ(GetFieldError(status)->field, "eval_fanouts");
  }
}

TEST(JobTextsTest, ReadsNegatives) {
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

TEST(JobTextsTest, ErrorsNameTheFieldAndTheText) {
  EXPECT_EQ(ParseFanouts("15,a", "eval_fanouts").status().message(),
            "eval_fanouts \"15,a\": \"a\" is not a number of at least -1 (all "
            "neighbours); write e.g. 15,10,5");
  EXPECT_EQ(ParseFanouts("-2").status().message(),
            "fanouts \"-2\": \"-2\" is not a number of at least -1 (all "
            "neighbours); write e.g. 15,10,5");
  for (const char* text : {"all:1", "binary", "in-batch:2"}) {
    EXPECT_EQ(ParseNegatives(text).status().message(),
              std::string("negatives \"") + text +
                  "\": is not one of binary:R, triplet:K, shared:K, in-batch");
  }
  EXPECT_EQ(ParseNegatives("x", "eval").status().message(),
            "eval \"x\": is not one of binary:R, triplet:K, shared:K, "
            "in-batch");
}

TEST(JobTextsTest, ReadsFanoutsOfRelations) {
  using Texts = std::vector<std::string>;
  JobSpec spec;
  ASSERT_EQ(
      ParseJobFanouts(Texts{"a__b__c= 5,6", "15,10", " d__e__f =0"}, spec),
      absl::OkStatus());
  EXPECT_THAT(spec.fanouts, ElementsAre(15, 10));
  EXPECT_EQ(spec.relation_fanouts.size(), 2u);
  EXPECT_THAT(spec.relation_fanouts.at("a__b__c"), ElementsAre(5, 6));
  EXPECT_THAT(spec.relation_fanouts.at("d__e__f"), ElementsAre(0));
  EXPECT_EQ(FormatJobFanouts(spec), "15,10 a__b__c=5,6 d__e__f=0");
  const auto error = [](const Texts& texts) {
    JobSpec other;
    return std::string(ParseJobFanouts(texts, other).message());
  };
  EXPECT_EQ(error({"1", "2"}),
            "fanouts 2: given twice without a relation; write "
            "SRC__NAME__DST=15,10 for each relation");
  EXPECT_EQ(error({"a__b__c=1", "a__b__c =2"}),
            "fanouts a__b__c =2: names a__b__c twice");
  EXPECT_EQ(error({"a__b__c=x"}),
            "fanouts \"x\": \"x\" is not a number of at least -1 (all "
            "neighbours); write e.g. 15,10,5");
}

TEST(JobTextsTest, TheLastTrainGraphAndNegativesCount) {
  using Texts = std::vector<std::string>;
  JobSpec spec;
  ASSERT_EQ(ParseTrainGraph(Texts{"full", "induced:train"}, spec),
            absl::OkStatus());
  EXPECT_EQ(spec.train_graph, "train");
  EXPECT_EQ(FormatTrainGraph(spec), "induced:train");
  for (const char* text : {"", "induced", "induced:", "train", "Full"}) {
    EXPECT_EQ(ParseTrainGraph(Texts{text}, spec).message(),
              std::string("train_graph \"") + text +
                  "\": is neither full nor induced:SPLIT, e.g. induced:train");
  }
  ASSERT_EQ(ParseTrainGraph(Texts{"induced:train", "full"}, spec),
            absl::OkStatus());
  EXPECT_EQ(spec.train_graph, "");
  EXPECT_EQ(FormatTrainGraph(spec), "full");
  ASSERT_EQ(ParseJobNegatives(Texts{"binary:2", "triplet:3"}, spec),
            absl::OkStatus());
  EXPECT_EQ(spec.negatives.mode, NegativeMode::kTriplet);
  EXPECT_EQ(spec.negatives.amount, 3);
  EXPECT_EQ(FormatJobNegatives(spec), "triplet:3");
}

}  // namespace
}  // namespace millrace
