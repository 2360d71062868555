// SPDX-License-Identifier: Apache-2.0
#include "common/cli/words.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

TEST(WordsTest, OptionsAreNamedAfterFields) {
  EXPECT_EQ(OptionName("tls_server_name"), "--tls-server-name");
}

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

TEST(WordsTest, FindsCompletionsOfAPrefix) {
  EXPECT_EQ(NearestWord("--batch", {"--patch", "--batch-size"}),
            "--batch-size");
  EXPECT_EQ(NearestWord("ba", {"batch"}), "");
}

TEST(WordsTest, NearestOfSeveralWins) {
  EXPECT_EQ(NearestWord("import", {"report", "imports"}), "imports");
}

TEST(WordsTest, SuggestsNothingWithoutACandidate) {
  EXPECT_EQ(DidYouMean("sag", {"gat", "sage"}), "; did you mean sage?");
  EXPECT_EQ(DidYouMean("resnet", {"gat", "sage"}), "");
}

TEST(WordsTest, CommaListRemovesBlanksAroundItems) {
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, std::string>>{{"25, 10", "25,10"},
                                                        {" 25 ,\t10 ", "25,10"},
                                                        {"25,10", "25,10"},
                                                        {"a b, c", "a b,c"},
                                                        {" , 1", ",1"},
                                                        {"", ""}}) {
    std::string list = text;
    EXPECT_EQ(CommaList()(list), "");
    EXPECT_EQ(list, expected) << text;
  }
}

}  // namespace
}  // namespace millrace
