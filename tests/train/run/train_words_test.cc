// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/train_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;

TEST(TrainWordsTest, WordsStandForTheirValues) {
  EXPECT_EQ(ValueOf(kNormWords, "layer"), NormKind::kLayer);
  EXPECT_EQ(WordFor(kNormWords, NormKind::kLayer), "layer");
  EXPECT_EQ(ValueOf(kOptimizerWords, "adam"), OptimizerKind::kAdam);
  EXPECT_EQ(ValueOf(kOptimizerWords, "adamw"), OptimizerKind::kAdamW);
  EXPECT_EQ(ValueOf(kOptimizerWords, "sgd"), OptimizerKind::kSgd);
  EXPECT_EQ(ValueOf(kEvalRanksWords, "0"), false);
  EXPECT_THAT(WordsIn(kAggregationWords), ElementsAre("mean", "sum", "max"));
}

TEST(TrainWordsTest, OtherWordsHaveNoValue) {
  for (const char* word : {"", "Adam", "ada", "adamww"}) {
    EXPECT_EQ(ValueOf(kOptimizerWords, word), std::nullopt) << word;
  }
}

TEST(TrainWordsTest, ValuesWithoutAWordHaveTheFirst) {
  EXPECT_EQ(WordFor(kDecoderWords, DecoderKind::kNone), "dot");
  EXPECT_EQ(WordFor(kEvalNegativesWords, EvalNegatives::kDrawn), "all");
}

}  // namespace
}  // namespace millrace::testing
