// SPDX-License-Identifier: Apache-2.0
#include "common/cli/words.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(WordsTest, FindsWordsWithFewEdits) {
  const std::vector<std::string> words = {"given", "hash", "ldg", "metis",
                                          "random"};
  EXPECT_EQ(NearestWord("metsi", words), "metis");
  EXPECT_EQ(NearestWord("mets", words), "metis");
  EXPECT_EQ(NearestWord("metiss", words), "metis");
  EXPECT_EQ(NearestWord("ramdon", words), "random");
  EXPECT_EQ(NearestWord("lgd", words), "ldg");
}

TEST(WordsTest, FindsNothingFarAway) {
  const std::vector<std::string> words = {"ldg", "metis"};
  EXPECT_EQ(NearestWord("motif", words), "");
  EXPECT_EQ(NearestWord("kway", words), "");
  EXPECT_EQ(NearestWord("ld", words), "");
  EXPECT_EQ(NearestWord("", words), "");
  EXPECT_EQ(NearestWord("metis", {}), "");
}

TEST(WordsTest, FindsWhatTheWordBegins) {
  EXPECT_EQ(NearestWord("--batch", {"--patch", "--batch-size"}),
            "--batch-size");
  EXPECT_EQ(NearestWord("ba", {"batch"}), "");
}

TEST(WordsTest, NearestOfSeveralWins) {
  EXPECT_EQ(NearestWord("import", {"report", "imports"}), "imports");
}

TEST(WordsTest, AsksNothingWithoutACandidate) {
  EXPECT_EQ(DidYouMean("sag", {"gat", "sage"}), "; did you mean sage?");
  EXPECT_EQ(DidYouMean("resnet", {"gat", "sage"}), "");
}

}  // namespace
}  // namespace millrace
