// SPDX-License-Identifier: Apache-2.0
// millrace lineage, help and completion, and the advice of all commands.
#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "client/cli/command_advice.h"
#include "client/cli/label_json.h"
#include "client/flags/option_errors.h"
#include "common/base/field_error.h"
#include "common/cli/completion.h"
#include "tests/cli/command_runner.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class LineageCommandTest : public CommandTest {
 protected:
  std::string Log(const std::string& text) {
    std::ofstream(Path("log")) << text;
    return Path("log");
  }
};

constexpr char kFirst[] =
    R"({"attempt":0,"checkpoint":"0:0","epoch":0,"batch":0,"seeds":[7,8]})";
constexpr char kSecond[] =
    R"({"attempt":0,"checkpoint":"0:0","epoch":0,"batch":1,"seeds":[9]})";
constexpr char kAgain[] =
    R"({"attempt":1,"checkpoint":"0:1","epoch":0,"batch":1,"seeds":[5]})";

TEST_F(LineageCommandTest, PrintsAttemptsAndEpochs) {
  const std::string log =
      Log(std::string(kFirst) + "\n" + kSecond + "\n" + kAgain + "\n{torn\n");
  ASSERT_EQ(Run({"lineage", log}), 0) << err_;
  EXPECT_EQ(out_,
            "attempt 0: from 0:0, 2 lines, 1 void\n"
            "attempt 1: from 0:1, 1 lines, 0 void\n"
            "epoch 0: 2 batches, 3 seeds\n"
            "1 torn lines, left out\n"
            "each seed once per epoch\n");
  ASSERT_EQ(Run({"lineage", log, "--valid", "--seeds", "3"}), 0) << err_;
  EXPECT_EQ(out_, std::string(kFirst) + "\n" + kAgain + "\n");
}

TEST_F(LineageCommandTest, FaultsFail) {
  const std::string log = Log(std::string(kFirst) + "\n");
  EXPECT_EQ(Run({"lineage", log, "--seeds", "3"}), 1);
  EXPECT_THAT(out_, HasSubstr("fault: epoch 0 has 2 seeds, not 3\n"));
  EXPECT_THAT(out_, Not(HasSubstr("each seed once")));
  EXPECT_THAT(err_, StartsWith("millrace lineage: 1 fault, the first: epoch 0 "
                               "has 2 seeds, not 3\nmillrace lineage: give "
                               "the logs of all hosts; "));
  const std::string twice = Log(std::string(kSecond) + "\n" + kSecond + "\n");
  EXPECT_EQ(Run({"lineage", twice, "--valid"}), 1);
  EXPECT_EQ(out_, std::string(kSecond) + "\n" + kSecond + "\n");
  EXPECT_THAT(err_,
              HasSubstr("fault: batch 0:1 occurs twice, in attempts 0 and 0"));
  EXPECT_THAT(err_, HasSubstr("3 faults, the first: batch 0:1 occurs twice"));
}

using HelpCommandTest = CommandTest;

TEST_F(HelpCommandTest, PrintsWhatTheCommandsHelpPrints) {
  ASSERT_EQ(Run({"import", "ogb", "--help"}), 0);
  const std::string help = out_;
  ASSERT_EQ(Run({"help", "import", "ogb"}), 0) << err_;
  EXPECT_EQ(out_, help);
  ASSERT_EQ(Run({"--help"}), 0);
  const std::string all = out_;
  ASSERT_EQ(Run({"help"}), 0) << err_;
  EXPECT_EQ(out_, all);
}

TEST_F(HelpCommandTest, GuessesMisspeltCommands) {
  EXPECT_EQ(Run({"help", "import", "obg"}), 2);
  EXPECT_THAT(err_, HasSubstr("there is no command obg; did you mean ogb?\n"));
  EXPECT_EQ(Run({"help", "verify", "x"}), 2);
  EXPECT_THAT(err_, HasSubstr("there is no command x\n"));
}

TEST_F(HelpCommandTest, CompletionPrintsTheScriptOfAShell) {
  ASSERT_EQ(Run({"completion", "fish"}), 0) << err_;
  EXPECT_EQ(out_, CompletionScript("fish"));
  EXPECT_EQ(Run({"completion", "csh"}), 2);
  EXPECT_EQ(Run({"completion"}), 2);
}

TEST(CommandAdviceTest, EachReasonHasAdvice) {
  const auto advice = [](std::string_view reason) {
    const absl::Status status = InTermsOfOptions(
        WithReason(absl::InternalError("x"), Reason{reason}), CommandAdvice());
    return std::string(status.message());
  };
  EXPECT_THAT(advice("ids_with_gaps"), HasSubstr("--num-nodes TYPE=N"));
  EXPECT_THAT(advice("import_too_large"), HasSubstr("a smaller --memory"));
  EXPECT_EQ(advice("metis_failed"), "x\nuse another --seed, or --method ldg");
  EXPECT_THAT(advice("no_assignment"), HasSubstr("--assignment F.npy"));
  EXPECT_THAT(advice("no_lists_in_dataset"), HasSubstr("--directions"));
  EXPECT_THAT(advice("too_large_for_metis"), HasSubstr("\nuse --method ldg"));
  EXPECT_EQ(advice("other"), "x");
}

TEST(LabelJsonTest, ClassesAreShownIfThereAreAny) {
  LabelSummary summary;
  summary.labelled = 5;
  EXPECT_EQ(LabelJson(summary).dump(), R"({"labelled":5})");
  summary.largest = 0;
  summary.largest_node = 3;
  EXPECT_EQ(LabelJson(summary).dump(),
            R"({"labelled":5,"classes":1,"largest":0,"largest_node":3,)"
            R"("sparse":false})");
}

}  // namespace
}  // namespace millrace::testing
