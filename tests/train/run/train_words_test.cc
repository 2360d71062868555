// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/train_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

// Expects that the words, in the order of the help, stand for these values.
template <typename Value, size_t kCount>
void ExpectWords(const ValueWord<Value> (&words)[kCount],
                 const std::vector<std::pair<std::string, Value>>& expected) {
  ASSERT_EQ(kCount, expected.size());
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(words[i].word, expected[i].first);
    EXPECT_TRUE(words[i].value == expected[i].second) << words[i].word;
  }
}

TEST(TrainWordsTest, EachOptionHasItsWords) {
  ExpectWords<NormKind>(kNormWords, {{"none", NormKind::kNone},
                                     {"batch", NormKind::kBatch},
                                     {"layer", NormKind::kLayer}});
  ExpectWords<Aggregation>(kAggregationWords, {{"mean", Aggregation::kMean},
                                               {"sum", Aggregation::kSum},
                                               {"max", Aggregation::kMax}});
  ExpectWords<GcnNorm>(kGcnNormWords, {{"full", GcnNorm::kFull},
                                       {"sampled", GcnNorm::kSampled}});
  ExpectWords<bool>(kGraphHeadWords, {{"mlp", true}, {"none", false}});
  ExpectWords<DecoderKind>(
      kDecoderWords,
      {{"dot", DecoderKind::kDot}, {"distmult", DecoderKind::kDistMult}});
  ExpectWords<LinkLoss>(
      kLossWords, {{"bce", LinkLoss::kBce}, {"softmax", LinkLoss::kSoftmax}});
  ExpectWords<InferenceKind>(
      kInferenceWords,
      {{"full", InferenceKind::kFull}, {"sampled", InferenceKind::kSampled}});
  ExpectWords<EvalNegatives>(
      kEvalNegativesWords,
      {{"all", EvalNegatives::kAll}, {"given", EvalNegatives::kGiven}});
  ExpectWords<bool>(kEvalRanksWords, {{"0", false}, {"all", true}});
  ExpectWords<bool>(kOutputWords, {{"logits", false}, {"embeddings", true}});
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
