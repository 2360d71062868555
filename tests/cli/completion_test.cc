// SPDX-License-Identifier: Apache-2.0
#include "common/cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "common/cli/program.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() : app_("A mill", "race") {
    CLI::App* mill = app_.add_subcommand("mill", "Mills");
    CLI::App* grind = mill->add_subcommand("grind", "Grinds");
    grind->add_option("STORE", text_, "Where to")->required();
    grind->add_option("HOW", text_, "How")->check(OneOf({"wet", "dry"}));
    grind->add_option("--mode", text_, "Mode")->check(OneOf({"fast", "slow"}));
    grind->add_option("--list", text_, "List")->type_name("FILE");
    grind->add_option("--wheels", number_, "Wheels");
    grind->add_flag("--wet,!--dry", wet_, "Wet or dry");
    grind->add_option_group("Source")->add_option("--wind", text_, "Wind");
    app_.add_subcommand("melt", "Melts");
    app_.add_subcommand("help", "Helps");
    FinishOptions(app_);
  }

  // The candidates without their descriptions.
  std::vector<std::string> Complete(std::vector<std::string> words) const {
    std::vector<std::string> candidates;
    for (const absl::string_view line :
         absl::StrSplit(Completions(app_, words), '\n', absl::SkipEmpty())) {
      candidates.emplace_back(line.substr(0, line.find('\t')));
    }
    return candidates;
  }

  CLI::App app_;
  std::string text_;
  int number_ = 0;
  bool wet_ = false;
};

TEST_F(CompletionTest, OffersCommands) {
  EXPECT_THAT(Complete({""}), ElementsAre("mill", "melt", "help"));
  EXPECT_THAT(Complete({"mi"}), ElementsAre("mill"));
  EXPECT_THAT(Complete({"mill", ""}), ElementsAre("grind"));
  EXPECT_THAT(Complete({"x"}), IsEmpty());
}

TEST_F(CompletionTest, OffersCommandsAfterHelp) {
  EXPECT_THAT(Complete({"help", "m"}), ElementsAre("mill", "melt"));
  EXPECT_THAT(Complete({"help", "mill", ""}), ElementsAre("grind"));
}

TEST_F(CompletionTest, DescribesCandidates) {
  EXPECT_EQ(Completions(app_, {"mil"}), "mill\tMills\n");
}

TEST_F(CompletionTest, OffersOptionsOfTheCommandAndTheProgram) {
  EXPECT_THAT(Complete({"mill", "grind", "--"}),
              AllOf(Contains("--mode"), Contains("--wind"), Contains("--dry"),
                    Contains("--log-level"), Contains("--help")));
  EXPECT_THAT(Complete({"mill", "grind", "--w"}),
              ElementsAre("--wheels", "--wet", "--wind"));
  EXPECT_THAT(Complete({"--"}), Not(Contains("--mode")));
}

TEST_F(CompletionTest, OffersValues) {
  EXPECT_THAT(Complete({"mill", "grind", "--mode", ""}),
              ElementsAre("fast", "slow"));
  EXPECT_THAT(Complete({"mill", "grind", "--mode", "s"}), ElementsAre("slow"));
  EXPECT_THAT(Complete({"--log-level", "w"}), ElementsAre("warning"));
  EXPECT_THAT(Complete({"mill", "grind", "--wheels", ""}), IsEmpty());
}

TEST_F(CompletionTest, OffersValuesAfterEquals) {
  // Tests the form that zsh and fish use, and that of bash.
  EXPECT_THAT(Complete({"mill", "grind", "--mode=s"}),
              ElementsAre("--mode=slow"));
  EXPECT_THAT(Complete({"mill", "grind", "--mode", "=", "s"}),
              ElementsAre("slow"));
  EXPECT_THAT(Complete({"mill", "grind", "--mode", "="}),
              ElementsAre("fast", "slow"));
}

TEST_F(CompletionTest, AsksForFiles) {
  EXPECT_THAT(Complete({"mill", "grind", "--list", "x"}),
              ElementsAre(":files"));
  EXPECT_THAT(Complete({"mill", "grind", ""}), ElementsAre(":files"));
  EXPECT_THAT(Complete({"--config", ""}), ElementsAre(":files"));
}

TEST_F(CompletionTest, CountsPositionalsBetweenOptions) {
  EXPECT_THAT(Complete({"mill", "grind", "--wet", "a", ""}),
              ElementsAre("wet", "dry"));
  EXPECT_THAT(Complete({"mill", "grind", "--wheels", "3", ""}),
              ElementsAre(":files"));
  EXPECT_THAT(Complete({"mill", "grind", "a", "wet", ""}), IsEmpty());
}

TEST_F(CompletionTest, OffersNothingForUnknownOptions) {
  EXPECT_THAT(Complete({"mill", "grind", "--none=x"}), IsEmpty());
  EXPECT_THAT(Complete({}), IsEmpty());
}

TEST_F(CompletionTest, EveryShellHasAScript) {
  for (const std::string& shell : CompletionShells()) {
    EXPECT_THAT(CompletionScript(shell), ::testing::HasSubstr("__complete"));
  }
}

}  // namespace
}  // namespace millrace
