// SPDX-License-Identifier: Apache-2.0
#include "common/cli/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/base/unique_fd.h"
#include "common/cli/numbers.h"
#include "common/cli/words.h"
#include "tests/support/captured_output.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using testing::CapturedOutput;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Sets an environment variable for the duration of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    setenv(name, value, /*overwrite=*/1);
  }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* const name_;
};

// A program with two subcommands, `mill` and `grind` nested in it. Each has its
// own --mode and the options of the group "Names".
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest() : app_("A mill", "race") {
    app_.require_subcommand(1);
    CLI::App* mill = app_.add_subcommand("mill", "Mills");
    grind_ = mill->add_subcommand("grind", "Grinds");
    grind_->add_option("--wheels", wheels_, "Wheels");
    grind_->add_option("--grains", grains_, "Grains");
    grind_->add_option("--height", height_, "Height");
    grind_->add_option("--stones", stones_, "Stones")->check(AtLeast(1));
    grind_->add_option("--ratio", ratio_, "Ratio");
    grind_->add_option("--sieves", sieves_, "Sieves")->delimiter(',');
    grind_->add_option("--belts", belts_, "Belts")->delimiter(',');
    grind_->add_option("--mode", mode_, "Mode")->check(OneOf({"fast", "slow"}));
    AddNames(*grind_);
    grind_->add_option("--memory", memory_, "Memory")->transform(ByteSize());
    grind_->add_flag("--wet,!--dry", wet_, "Wet or dry");
    CLI::Option_group* source = grind_->add_option_group("SOURCE");
    source->add_option("--wind", wind_, "Wind");
    source->add_option("--water", water_, "Water");
    source->require_option(0, 1);
    CLI::App* sell = app_.add_subcommand("sell", "Sells");
    sell->add_option("--mode", price_, "Price");
    sell->add_option("BUYER", buyer_, "Buyer");
    AddNames(*sell);
    FinishOptions(app_);
  }

  void AddNames(CLI::App& command) {
    CLI::Option_group* group = command.add_option_group("Names");
    group->add_option("--list", list_, "Names");
    group->add_option("--pair", pairs_, "NAME=VALUE, repeatable");
  }

  ~ProgramTest() override { std::filesystem::remove(file_); }

  // Runs the program, keeps its output and returns its exit status.
  int Run(std::vector<std::string> args, absl::Status result = {}) {
    args.insert(args.begin(), "race");
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    CapturedOutput out(STDOUT_FILENO);
    CapturedOutput err(STDERR_FILENO);
    const int status =
        RunProgram(app_, static_cast<int>(argv.size()), argv.data(), [&] {
          ran_ = true;
          return result;
        });
    out_ = out.Stop();
    err_ = err.Stop();
    return status;
  }

  std::string WriteConfig(const std::string& text) {
    std::ofstream(file_) << text;
    return file_;
  }

  CLI::App app_;
  CLI::App* grind_ = nullptr;
  int wheels_ = 3;
  uint64_t grains_ = 0;
  int64_t height_ = 0;
  int stones_ = 2;
  double ratio_ = 0.5;
  std::vector<double> sieves_;
  std::vector<std::string> belts_;
  int price_ = 0;
  std::string buyer_;
  std::string list_;
  std::string mode_ = "fast";
  std::vector<std::string> pairs_;
  int64_t memory_ = 0;
  bool wet_ = true;
  std::string wind_;
  std::string water_;
  bool ran_ = false;
  std::string out_;
  std::string err_;
  const std::string file_ = ::testing::TempDir() + "program_test_" +
                            std::to_string(getpid()) + ".toml";
};

TEST_F(ProgramTest, RunsBodyAndReturnsZero) {
  EXPECT_EQ(Run({"mill", "grind", "--wheels", "5"}), 0);
  EXPECT_TRUE(ran_);
  EXPECT_EQ(wheels_, 5);
}

TEST_F(ProgramTest, PrintsHelpWithDefaultsOnStdout) {
  EXPECT_EQ(Run({"mill", "grind", "--help"}), 0);
  EXPECT_FALSE(ran_);
  EXPECT_THAT(out_, AllOf(HasSubstr("--wheels"), HasSubstr("(default: 3)"),
                          HasSubstr("MILLRACE_MILL_GRIND_<OPTION>")));
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(ProgramTest, PrintsVersion) {
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_THAT(out_, ::testing::MatchesRegex("race [0-9.]+\n"));
}

TEST_F(ProgramTest, UnknownOptionIsAUsageError) {
  EXPECT_EQ(Run({"mill", "grind", "--whels", "5"}), 2);
  EXPECT_FALSE(ran_);
  EXPECT_THAT(err_, AllOf(HasSubstr("--whels"),
                          HasSubstr("see `race mill grind --help`")));
}

TEST_F(ProgramTest, MissingSubcommandNamesThoseThatExist) {
  EXPECT_EQ(Run({}), 2);
  EXPECT_THAT(err_,
              HasSubstr("the commands are mill, sell; see `race --help`"));
}

TEST_F(ProgramTest, UnknownSubcommandNamesThoseThatExist) {
  EXPECT_EQ(Run({"weave"}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("there is no command weave\n"),
                          HasSubstr("the commands are mill, sell")));
  EXPECT_EQ(Run({"mill", "weave"}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("there is no command weave\n"),
                          HasSubstr("the commands are grind; see `race mill "
                                    "--help`")));
}

TEST_F(ProgramTest, OnlyOptionsThatExcludeEachOtherConflict) {
  grind_->get_option("--wheels")->excludes(grind_->get_option("--grains"));
  EXPECT_EQ(Run({"mill", "grind", "--list", "a", "--pair", "a=b", "--wheels",
                 "1", "--grains", "2"}),
            2);
  EXPECT_FALSE(ran_);
  EXPECT_THAT(err_, HasSubstr("--wheels and --grains cannot be used together"));
}

TEST_F(ProgramTest, FailurePrintsWhatAndWhatToDo) {
  EXPECT_EQ(Run({"mill", "grind"},
                absl::DataLossError("stone.npy is cracked\nbuy another")),
            1);
  EXPECT_EQ(err_,
            "race mill grind: stone.npy is cracked\n"
            "race mill grind: buy another\n");
}

TEST_F(ProgramTest, FailureWithoutAdviceGetsGeneralHint) {
  EXPECT_EQ(Run({"mill", "grind"}, absl::FailedPreconditionError("no water")),
            1);
  EXPECT_EQ(err_,
            "race mill grind: no water\n"
            "race mill grind: see `race mill grind --help`\n");
}

TEST_F(ProgramTest, InvalidOptionFromBodyIsAUsageError) {
  EXPECT_EQ(Run({"mill", "grind"}, UsageError("--wheels is 7, at most 6")), 2);
  EXPECT_EQ(Run({"mill", "grind"}, absl::InvalidArgumentError("bad file")), 1);
}

TEST_F(ProgramTest, OptionThatIsNotServedIsAUsageError) {
  EXPECT_EQ(
      Run({"mill", "grind"}, UnsupportedError("--wheels 7 is not built yet")),
      2);
  EXPECT_EQ(Run({"mill", "grind"}, absl::UnimplementedError("no oats")), 1);
}

// What a user should do about an error that does not say it.
TEST_F(ProgramTest, EachKindOfErrorHasAdvice) {
  const std::vector<std::pair<absl::StatusCode, std::string>> cases = {
      {absl::StatusCode::kInvalidArgument,
       "correct what is named above and run the command again"},
      {absl::StatusCode::kNotFound,
       "check that the path or name exists and is spelt right"},
      {absl::StatusCode::kAlreadyExists,
       "choose another output path, or remove the existing one"},
      {absl::StatusCode::kPermissionDenied,
       "check the owner and the permissions of the path"},
      {absl::StatusCode::kUnavailable,
       "check that every server is up: millrace status --servers LIST"},
      {absl::StatusCode::kDeadlineExceeded,
       "check that the servers are up and not overloaded, or allow more time"},
      {absl::StatusCode::kResourceExhausted,
       "free memory or disk space, or ask for less at a time"},
      {absl::StatusCode::kOutOfRange,
       "choose a value within the limits named above"},
      {absl::StatusCode::kDataLoss,
       "the files are damaged: `millrace verify PATH` lists them; re-create "
       "them"},
      {absl::StatusCode::kInternal,
       "this is a bug in Millrace: please report it with this message"},
      // Not by an interrupt.
      {absl::StatusCode::kCancelled, "see `race mill grind --help`"}};
  for (const auto& [code, advice] : cases) {
    EXPECT_EQ(Run({"mill", "grind"}, absl::Status(code, "a stone")), 1);
    EXPECT_EQ(err_,
              "race mill grind: a stone\nrace mill grind: " + advice + "\n");
  }
  // Advice of several lines is one line.
  Run({"mill", "grind"}, absl::NotFoundError("a stone\nlook\nfind"));
  EXPECT_THAT(err_, HasSubstr("\nrace mill grind: look find\n"));
}

TEST_F(ProgramTest, BadInputDoesNotPointToHelp) {
  Run({"mill", "grind"}, absl::InvalidArgumentError("oats.csv: line 3: stone"));
  EXPECT_THAT(err_, AllOf(HasSubstr("correct what is named above"),
                          Not(HasSubstr("--help"))));
}

TEST_F(ProgramTest, InvalidTextIsEscaped) {
  Run({"mill", "grind"},
      absl::DataLossError("\xff"
                          "bad\x1b[31m\x80 \xc3\nand \xed\xa0\x80"));
  EXPECT_EQ(err_,
            "race mill grind: \\xffbad\\x1b[31m\\x80 \\xc3\n"
            "race mill grind: and \\xed\\xa0\\x80\n");
}

TEST_F(ProgramTest, TextOfAnyLanguageIsShown) {
  const std::string text = "M\u00fchle \u6c34\u8eca \U0001f33e";
  Run({"mill", "grind"}, absl::DataLossError(text));
  EXPECT_THAT(err_, HasSubstr(text));
}

// The first and the last characters of each kind that can be shown, and their
// neighbours, which cannot.
TEST_F(ProgramTest, CharactersThatCannotBeShownAreEscaped) {
  for (const char* shown :
       {" ", "~", "\u00a0", "\u07ff", "\u0800", "\u200a", "\u2010", "\u2027",
        "\u202f", "\u205f", "\u2070", "\ud7ff", "\ue000", "\ufefe", "\uff00",
        "\uffff", "\U00010000", "\U0010ffff"}) {
    Run({"mill", "grind"}, absl::DataLossError(shown));
    EXPECT_THAT(err_, HasSubstr(StrCat("grind: ", shown, "\n")));
  }
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\x1f", "\\x1f"},
      {"\x7f", "\\x7f"},
      {"\xc2\x9f", "\\xc2\\x9f"},
      {"\u200b", "\\xe2\\x80\\x8b"},
      {"\u200f", "\\xe2\\x80\\x8f"},
      {"\u2028", "\\xe2\\x80\\xa8"},
      {"\u202e", "\\xe2\\x80\\xae"},
      {"\u2060", "\\xe2\\x81\\xa0"},
      {"\u206f", "\\xe2\\x81\\xaf"},
      {"\ufeff", "\\xef\\xbb\\xbf"},
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // first surrogate
      {"\xed\xbf\xbf", "\\xed\\xbf\\xbf"},           // last one
      {"\xe0\x9f\xbf", "\\xe0\\x9f\\xbf"},           // overlong
      {"\xf0\x8f\xbf\xbf", "\\xf0\\x8f\\xbf\\xbf"},  // overlong
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // too large
      {"\xf8", "\\xf8"},
      {"\xbf", "\\xbf"},
      {"\xe4\xbd", "\\xe4\\xbd"},     // ends too soon
      {"\xe4\xbdx", "\\xe4\\xbdx"}};  // goes on with another character
  for (const auto& [text, escaped] : cases) {
    Run({"mill", "grind"}, absl::DataLossError(text));
    EXPECT_THAT(err_, HasSubstr(StrCat("grind: ", escaped, "\n")));
  }
}

TEST_F(ProgramTest, NegativeNumberIsNotWrapped) {
  EXPECT_EQ(Run({"mill", "grind", "--grains", "-1"}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("--grains"), HasSubstr("at least 0")));
  EXPECT_EQ(Run({"mill", "grind", "--height", "-1"}), 0);
  EXPECT_EQ(height_, -1);
}

TEST_F(ProgramTest, NumberBeyond64BitsIsNotTruncated) {
  EXPECT_EQ(Run({"mill", "grind", "--grains", "18446744073709551615"}), 0);
  EXPECT_EQ(grains_, 18446744073709551615u);
  EXPECT_EQ(Run({"mill", "grind", "--grains", "18446744073709551616"}), 2);
  EXPECT_EQ(Run({"mill", "grind", "--height", "9223372036854775808"}), 2);
  EXPECT_EQ(Run({"mill", "grind", "--height", "-9223372036854775809"}), 2);
}

TEST_F(ProgramTest, AtLeastNamesItsLimit) {
  EXPECT_EQ(Run({"mill", "grind", "--stones", "1"}), 0);
  for (const char* bad :
       {"0", "-4", "1.5", "many", "", "9223372036854775808"}) {
    EXPECT_EQ(Run({"mill", "grind", "--stones", bad}), 2) << bad;
    EXPECT_THAT(err_, HasSubstr("--stones"));
  }
  Run({"mill", "grind", "--stones", "0"});
  EXPECT_THAT(err_, HasSubstr("\"0\" is not a whole number of at least 1\n"));
}

TEST_F(ProgramTest, ReadsVariables) {
  ScopedVariable wheels("MILLRACE_MILL_GRIND_WHEELS", "8");
  ScopedVariable pair("MILLRACE_PAIR", "a=1,2");
  ScopedVariable wet("MILLRACE_MILL_GRIND_WET", "false");
  EXPECT_EQ(Run({"mill", "grind"}), 0);
  EXPECT_EQ(wheels_, 8);
  EXPECT_THAT(pairs_, ElementsAre("a=1,2"));
  EXPECT_FALSE(wet_);
}

TEST_F(ProgramTest, CommandLineOverridesVariable) {
  ScopedVariable wheels("MILLRACE_MILL_GRIND_WHEELS", "8");
  EXPECT_EQ(Run({"mill", "grind", "--wheels", "2"}), 0);
  EXPECT_EQ(wheels_, 2);
}

TEST_F(ProgramTest, OptionsOfOneNameHaveVariablesOfTheirOwn) {
  ScopedVariable price("MILLRACE_SELL_MODE", "12");
  ScopedVariable mode("MILLRACE_MILL_GRIND_MODE", "slow");
  ScopedVariable unrelated("MILLRACE_MOON", "full");
  EXPECT_EQ(Run({"sell"}), 0) << err_;
  EXPECT_EQ(price_, 12);
  EXPECT_EQ(mode_, "fast");
  EXPECT_EQ(Run({"mill", "grind"}), 0) << err_;
  EXPECT_EQ(mode_, "slow");
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(ProgramTest, VariableOfGroupReachesEverySubcommand) {
  ScopedVariable list("MILLRACE_LIST", "oats");
  EXPECT_EQ(Run({"sell"}), 0) << err_;
  EXPECT_EQ(list_, "oats");
  list_ = "";
  EXPECT_EQ(Run({"mill", "grind"}), 0) << err_;
  EXPECT_EQ(list_, "oats");
}

TEST_F(ProgramTest, WarnsOnceAboutAMisspeltVariable) {
  ScopedVariable list("MILLRACE_LSIT", "oats");
  ScopedVariable bare("MILLRACE_WHEELS", "4");
  EXPECT_EQ(Run({"mill", "grind"}), 0);
  EXPECT_THAT(err_, AllOf(HasSubstr("not read; did you mean MILLRACE_LIST? "
                                    "variable=MILLRACE_LSIT\n"),
                          HasSubstr("not read; did you mean "
                                    "MILLRACE_MILL_GRIND_WHEELS? "
                                    "variable=MILLRACE_WHEELS\n")));
  EXPECT_EQ(wheels_, 3);
  // Processes that the program starts do not see it either.
  EXPECT_EQ(std::getenv("MILLRACE_LSIT"), nullptr);
}

TEST_F(ProgramTest, OnlyOneEditMakesAMisspeltVariable) {
  for (const auto& [name, warned] :
       std::vector<std::pair<const char*, bool>>{{"MILLRACE_LISTS", true},
                                                 {"MILLRACE_L_I_ST", true},
                                                 {"MILLRACE_LISTED", false},
                                                 {"MILLRACE_LIS", false},
                                                 {"MILLRACE_METRIC", false},
                                                 {"MILRACE_LISTS", false}}) {
    ScopedVariable variable(name, "oats");
    EXPECT_EQ(Run({"mill", "grind"}), 0);
    EXPECT_EQ(err_.find("is not read") != std::string::npos, warned) << name;
    EXPECT_EQ(std::getenv(name) == nullptr, warned) << name;
  }
  // An option of another command.
  ScopedVariable bare("MILLRACE_WHEELS", "4");
  EXPECT_EQ(Run({"sell"}), 0);
  EXPECT_THAT(err_, IsEmpty());
}

TEST_F(ProgramTest, WarnsAboutAMisspeltVariableDespiteAUsageError) {
  ScopedVariable list("MILLRACE_LSIT", "oats");
  EXPECT_EQ(Run({"mill", "grind", "--wheels"}), 2);
  EXPECT_THAT(err_, HasSubstr("did you mean MILLRACE_LIST?"));
}

TEST_F(ProgramTest, VariableReachesOptionGroup) {
  ScopedVariable wind("MILLRACE_WIND", "west");
  EXPECT_EQ(Run({"mill", "grind"}), 0) << err_;
  EXPECT_EQ(wind_, "west");
}

TEST_F(ProgramTest, CommandLineOverridesConflictingOptionsFromElsewhere) {
  ScopedVariable wind("MILLRACE_WIND", "west");
  const std::string file = WriteConfig("wind = east\n");
  EXPECT_EQ(Run({"mill", "grind", "--water=river", "--config", file}), 0)
      << err_;
  EXPECT_EQ(water_, "river");
  EXPECT_EQ(wind_, "");
}

TEST_F(ProgramTest, MisspeltOptionIsNamedThoughOneIsMissing) {
  grind_->get_option("--wheels")->required();
  EXPECT_EQ(Run({"mill", "grind", "--whels", "5"}), 2);
  EXPECT_THAT(err_, HasSubstr("--whels"));
}

TEST_F(ProgramTest, BadVariableIsNamed) {
  ScopedVariable wheels("MILLRACE_MILL_GRIND_WHEELS", "many");
  EXPECT_EQ(Run({"mill", "grind"}), 2);
  EXPECT_THAT(err_, HasSubstr("--wheels: \"many\" is not a whole number "
                              "(MILLRACE_MILL_GRIND_WHEELS=many in the "
                              "environment)\n"));
  EXPECT_EQ(Run({"mill", "grind", "--wheels", "few"}), 2);
  EXPECT_THAT(err_, Not(HasSubstr("MILLRACE")));
}

TEST_F(ProgramTest, VariableThatTheBodyRefusesIsNamed) {
  ScopedVariable wheels("MILLRACE_MILL_GRIND_WHEELS", "7");
  const absl::Status refused =
      UsageError("--wheels is 7, at most 6\ntake one off");
  EXPECT_EQ(Run({"mill", "grind"}, refused), 2);
  EXPECT_EQ(err_,
            "race mill grind: --wheels is 7, at most 6 "
            "(MILLRACE_MILL_GRIND_WHEELS=7 in the environment)\n"
            "race mill grind: take one off\n");
  EXPECT_EQ(Run({"mill", "grind", "--wheels", "7"}, refused), 2);
  EXPECT_THAT(err_, Not(HasSubstr("MILLRACE")));
}

TEST_F(ProgramTest, BadValueOfAFileNamesTheFile) {
  const std::string file = WriteConfig("[mill.grind]\nwheels = many\n");
  EXPECT_EQ(Run({"mill", "grind", "--config", file}), 2);
  EXPECT_THAT(err_, HasSubstr("--wheels: \"many\" is not a whole number "
                              "(--wheels is from " +
                              file + ")\n"));
}

TEST_F(ProgramTest, ValuesThatAreNotOfTheirTypeSayWhatIsExpected) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"--wheels", "two"}, "--wheels: \"two\" is not a whole number\n"},
      {{"--wheels", "2.5"}, "--wheels: \"2.5\" is not a whole number\n"},
      {{"--wheels", "99999999999"},
       "--wheels: \"99999999999\" is out of range\n"},
      {{"--grains", "x"}, "--grains: \"x\" is not a whole number\n"},
      {{"--ratio", "abc"}, "--ratio: \"abc\" is not a number\n"},
      {{"--wet=maybe"}, "--wet: \"maybe\" is not true or false\n"},
      {{"--mode", "quick"}, "--mode: \"quick\" is not one of fast, slow\n"},
      {{"--wheels"}, "--wheels needs a value\n"},
      {{"--wind", "a", "--water", "b"},
       "only one of --wind, --water can be given\n"},
      {{"oats"}, "unexpected argument \"oats\"\n"}};
  for (auto [args, message] : cases) {
    args.insert(args.begin(), {"mill", "grind"});
    EXPECT_EQ(Run(args), 2) << message;
    EXPECT_THAT(err_, HasSubstr("race mill grind: " + message));
  }
}

TEST_F(ProgramTest, ConflictingAndRequiredOptionsAreNamed) {
  CLI::Option* wheels = grind_->get_option("--wheels");
  grind_->get_option("--stones")->needs(wheels);
  grind_->get_option("--height")->excludes(wheels);
  EXPECT_EQ(Run({"mill", "grind", "--stones", "3"}), 2);
  EXPECT_THAT(err_, HasSubstr("--stones needs --wheels\n"));
  EXPECT_EQ(Run({"mill", "grind", "--wheels", "3", "--height", "3"}), 2);
  EXPECT_THAT(err_,
              HasSubstr("--wheels and --height cannot be used together\n"));
  grind_->get_option("--memory")->required();
  EXPECT_EQ(Run({"mill", "grind"}), 2);
  EXPECT_THAT(err_, HasSubstr("--memory is required\n"));
}

TEST_F(ProgramTest, NoneOfAGroupIsNamed) {
  grind_->get_option_group("SOURCE")->require_option(1);
  EXPECT_EQ(Run({"mill", "grind"}), 2);
  EXPECT_THAT(err_, HasSubstr("one of --wind, --water is needed\n"));
}

TEST_F(ProgramTest, SuggestsCorrectionsForMisspeltWords) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"mill", "gridn"}, "there is no command gridn; did you mean grind?\n"},
      {{"mill", "grind", "--whels=3"},
       "there is no option --whels; did you mean --wheels?\n"},
      {{"mill", "grind", "--verison"},
       "there is no option --verison; did you mean --version?\n"},
      {{"mill", "grind", "--mode", "slwo"},
       "\"slwo\" is not one of fast, slow; did you mean slow?\n"}};
  for (const auto& [args, message] : cases) {
    EXPECT_EQ(Run(args), 2) << message;
    EXPECT_THAT(err_, HasSubstr(message));
  }
}

TEST_F(ProgramTest, LastOfRepeatedOptionCounts) {
  EXPECT_EQ(Run({"mill", "grind", "--wheels", "5", "--mode", "slow", "--wheels",
                 "6", "--mode", "fast"}),
            0)
      << err_;
  EXPECT_EQ(wheels_, 6);
  EXPECT_EQ(mode_, "fast");
}

TEST_F(ProgramTest, RepeatedListOptionKeepsAllValues) {
  CLI::App app("A mill", "race");
  std::vector<std::string> stones;
  app.add_option("--stones", stones, "Stones")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  FinishOptions(app);
  app.parse("--stones 2 --stones upper=3");
  EXPECT_EQ(stones, (std::vector<std::string>{"2", "upper=3"}));
}

TEST_F(ProgramTest, HelpShowsNoDefaultForRequiredOptions) {
  CLI::App app("A mill", "race");
  int wheels = 3;
  app.add_option("--wheels", wheels, "Wheels")->required();
  FinishOptions(app);
  EXPECT_THAT(app.help(), HasSubstr("Wheels (required)\n"));
}

TEST_F(ProgramTest, ReadsConfigFile) {
  const std::string file = WriteConfig(
      "# a comment\n"
      "list = a:1,b:2\n"
      "pair = z=3\n"
      "[mill.grind]\n"
      "wheels = 6\n"
      "pair = x=15,10\n"
      "mode = \"slow\"\n"
      "pair = y=[1,2]\n"
      "dry = true\n"
      "[sell]\n"
      "mode = 9\n");
  EXPECT_EQ(Run({"mill", "grind", "--config", file}), 0) << err_;
  EXPECT_EQ(wheels_, 6);
  EXPECT_EQ(list_, "a:1,b:2");
  EXPECT_EQ(mode_, "slow");
  EXPECT_THAT(pairs_, ElementsAre("x=15,10", "y=[1,2]"));
  EXPECT_FALSE(wet_);
  EXPECT_EQ(price_, 0);
}

TEST_F(ProgramTest, CommentsEndLinesButNotQuotes) {
  const std::string file = WriteConfig(
      "list = \"a#b\"  # quoted\n"
      "pair = x=1 # '\n"
      "[mill.grind]  # a section\n"
      "  # nothing else\n"
      "wheels = 6# six\n");
  EXPECT_EQ(Run({"mill", "grind", "--config", file}), 0) << err_;
  EXPECT_EQ(list_, "a#b");
  EXPECT_THAT(pairs_, ElementsAre("x=1"));
  EXPECT_EQ(wheels_, 6);
}

TEST_F(ProgramTest, ListInBracketsIsOneValue) {
  const std::string file = WriteConfig("list = [15, 10]\n");
  EXPECT_EQ(Run({"mill", "grind", "--config", file}), 0) << err_;
  EXPECT_EQ(list_, "15, 10");
}

TEST_F(ProgramTest, BlanksAroundItemsOfAListAreIgnored) {
  EXPECT_EQ(
      Run({"mill", "grind", "--sieves", " 0.5 , 2,1 ", "--belts", "a, b c ,d"}),
      0)
      << err_;
  EXPECT_THAT(sieves_, ElementsAre(0.5, 2, 1));
  EXPECT_THAT(belts_, ElementsAre("a", "b c", "d"));
  const std::string file =
      WriteConfig("[mill.grind]\nsieves = [4 , 8]\nbelts = e, f\n");
  EXPECT_EQ(Run({"mill", "grind", "--config", file}), 0) << err_;
  EXPECT_THAT(sieves_, ElementsAre(4, 8));
  EXPECT_THAT(belts_, ElementsAre("e", "f"));
  EXPECT_EQ(Run({"mill", "grind", "--sieves", "1, two"}), 2);
  EXPECT_THAT(err_, HasSubstr("--sieves: \"two\" is not a number\n"));
}

TEST_F(ProgramTest, CommandLineOverridesConfigWhichOverridesVariable) {
  ScopedVariable wheels("MILLRACE_MILL_GRIND_WHEELS", "8");
  ScopedVariable list("MILLRACE_LIST", "env");
  const std::string file =
      WriteConfig("list = file\n[mill.grind]\nwheels = 6\n");
  EXPECT_EQ(Run({"--config", file, "mill", "grind", "--list", "line"}), 0)
      << err_;
  EXPECT_EQ(wheels_, 6);
  EXPECT_EQ(list_, "line");
}

TEST_F(ProgramTest, SectionOverridesKeysForAllCommands) {
  const std::string file =
      WriteConfig("list = all\npair = a=1\n[mill.grind]\nlist = ground\n");
  EXPECT_EQ(Run({"mill", "grind", "--config", file}), 0) << err_;
  EXPECT_EQ(list_, "ground");
  EXPECT_THAT(pairs_, ElementsAre("a=1"));
  EXPECT_EQ(Run({"sell", "--config", file}), 0) << err_;
  EXPECT_EQ(list_, "all");
}

TEST_F(ProgramTest, KeyOfOneCommandBelongsInItsSection) {
  const std::string file = WriteConfig("mode = slow\n");
  EXPECT_EQ(Run({"mill", "grind", "--config", file}), 2);
  EXPECT_THAT(err_, HasSubstr("write it below [mill.grind] or [sell]\n"));
}

TEST_F(ProgramTest, LinesThatAreInTheWrongPlaceSayWhere) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"wheels = 6",
       "--wheels is for one command only, but appears above all sections\n"
       "race mill grind: write it below [mill.grind]\n"},
      {"mode = slow",
       "--mode is for certain commands only, but appears above all sections\n"
       "race mill grind: write it below [mill.grind] or [sell]\n"},
      {"lst = a", "there is no option --lst; did you mean list?\n"},
      {"[mill.grind]\nwheals = 6",
       "there is no option --wheals in section [mill.grind]; did you mean "
       "wheels?\n"},
      {"[grind]\nwheels = 6",
       "there is no option --wheels in section [grind]\n"},
      {"[sell]\nwheels = 6",
       "there is no option --wheels in section [sell]\n"}};
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Run({"mill", "grind", "--config", WriteConfig(text + "\n")}), 2);
    EXPECT_THAT(err_, HasSubstr("race mill grind: --config: " + message));
  }
}

TEST_F(ProgramTest, ConfigInAnotherFormatIsNamed) {
  for (const char* text :
       {"{\n  \"list\": \"a\"\n}\n", "list: a\nmode: b\n", "---\nlist: a\n"}) {
    EXPECT_EQ(Run({"mill", "grind", "--config", WriteConfig(text)}), 2);
    EXPECT_THAT(err_,
                AllOf(HasSubstr("is not a line of the form `option = value`\n"),
                      HasSubstr("neither YAML nor JSON")));
  }
}

TEST_F(ProgramTest, ConfigMustBeARegularFile) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(Run({"mill", "grind", "--config", file_}), 2);
  EXPECT_THAT(err_,
              HasSubstr("--config: " + file_ + " is not a regular file\n"));
}

TEST_F(ProgramTest, BadConfigVariableIsNamed) {
  // The variable is read when the options are added.
  ScopedVariable config("MILLRACE_CONFIG", "/nothing/here");
  CLI::App app("A mill", "race");
  FinishOptions(app);
  std::string name = "race";
  char* argv[] = {name.data()};
  CapturedOutput err(STDERR_FILENO);
  EXPECT_EQ(RunProgram(app, 1, argv, [] { return absl::OkStatus(); }), 2);
  EXPECT_THAT(err.Stop(),
              HasSubstr("MILLRACE_CONFIG=/nothing/here in the environment"));
}

TEST_F(ProgramTest, UnknownConfigKeyIsAUsageError) {
  EXPECT_EQ(Run({"mill", "grind", "--config", WriteConfig("whels = 6\n")}), 2);
  EXPECT_THAT(err_, HasSubstr("--whels"));
}

TEST_F(ProgramTest, ConfigKeyOfAnotherSectionIsAUsageError) {
  EXPECT_EQ(
      Run({"mill", "grind", "--config", WriteConfig("[sell]\nwheels = 6\n")}),
      2);
  EXPECT_THAT(err_, AllOf(HasSubstr("--wheels"), HasSubstr("[sell]")));
}

TEST_F(ProgramTest, MissingConfigFileIsAUsageError) {
  EXPECT_EQ(Run({"mill", "grind", "--config", file_ + ".none"}), 2);
  EXPECT_THAT(err_, AllOf(HasSubstr("--config"), HasSubstr(file_ + ".none")));
}

TEST_F(ProgramTest, ByteSizeTakesBinarySuffixes) {
  EXPECT_EQ(Run({"mill", "grind", "--memory", "2.5G"}), 0);
  EXPECT_EQ(memory_, 2684354560);
  EXPECT_EQ(Run({"mill", "grind", "--memory", "64MiB"}), 0);
  EXPECT_EQ(memory_, 64 << 20);
  EXPECT_EQ(Run({"mill", "grind", "--memory", "1048576"}), 0);
  EXPECT_EQ(memory_, 1 << 20);
  for (const char* bad : {"", "G", "-1", "1.2.3", "5X", "1e3", "99999999T"}) {
    EXPECT_EQ(Run({"mill", "grind", "--memory", bad}), 2) << bad;
  }
}

TEST_F(ProgramTest, ByteSizesHaveLimits) {
  const auto bytes = [this](const std::string& text) {
    EXPECT_EQ(Run({"mill", "grind", "--memory", text}), 0) << err_;
    return memory_;
  };
  EXPECT_EQ(bytes("0"), 0);
  EXPECT_EQ(bytes("1"), 1);
  EXPECT_EQ(bytes("7B"), 7);
  EXPECT_EQ(bytes("3 kib"), 3072);
  EXPECT_EQ(bytes("2kB"), 2048);
  EXPECT_EQ(bytes("5M"), 5 << 20);
  EXPECT_EQ(bytes("1T"), int64_t{1} << 40);
  EXPECT_EQ(bytes("8388607T"), int64_t{8388607} << 40);
  for (const char* bad : {"0.5", "0K", "8388608T", "1P", "1KM", "1 2K"}) {
    EXPECT_EQ(Run({"mill", "grind", "--memory", bad}), 2) << bad;
    EXPECT_THAT(err_, HasSubstr(StrCat("--memory: '", bad,
                                       "' is not a number of bytes such as "
                                       "1048576, 64M or 2.5G\n")));
  }
}

TEST_F(ProgramTest, ResultsThatCannotBeWrittenAreAFailure) {
  std::string name = "race", option = "--help";
  char* argv[] = {name.data(), option.data()};
  const UniqueFd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  const UniqueFd before(dup(STDOUT_FILENO));
  ASSERT_GE(full.get(), 0);
  std::fflush(stdout);
  dup2(full.get(), STDOUT_FILENO);
  CapturedOutput err(STDERR_FILENO);
  const int status = RunProgram(app_, 2, argv, [] { return absl::OkStatus(); });
  const std::string text = err.Stop();
  dup2(before.get(), STDOUT_FILENO);
  std::clearerr(stdout);
  std::cout.clear();
  EXPECT_EQ(status, 1);
  EXPECT_EQ(text,
            "race: cannot write the results to standard output\n"
            "race: check that the disk is not full and that the reader is "
            "alive\n");
}

// Runs a program whose body throws.
template <typename Error>
int RunThrowing(const Error& error) {
  CLI::App app("A mill", "race");
  FinishOptions(app);
  std::string name = "race";
  char* argv[] = {name.data()};
  return RunProgram(app, 1, argv, [&]() -> absl::Status { throw error; });
}

TEST(OutOfMemoryTest, IsNotABug) {
  for (const bool length : {false, true}) {
    CapturedOutput err(STDERR_FILENO);
    EXPECT_EQ(length ? RunThrowing(std::length_error("vector"))
                     : RunThrowing(std::bad_alloc()),
              1);
    EXPECT_THAT(err.Stop(),
                AllOf(HasSubstr("race: out of memory"),
                      HasSubstr("race: free memory, or ask for less at a time"),
                      Not(HasSubstr("bug"))));
  }
}

TEST(ThrownErrorTest, ThreadsThatCannotStartAreNoBug) {
  CapturedOutput err(STDERR_FILENO);
  EXPECT_EQ(RunThrowing(std::system_error(std::make_error_code(
                std::errc::resource_unavailable_try_again))),
            1);
  EXPECT_EQ(err.Stop(),
            "race: the system cannot start more threads\nrace: use a smaller "
            "--threads, or raise the limits on processes and memory\n");
}

TEST(ThrownErrorTest, OthersAreBugs) {
  CapturedOutput err(STDERR_FILENO);
  EXPECT_EQ(RunThrowing(std::system_error(
                std::make_error_code(std::errc::no_such_device))),
            1);
  EXPECT_EQ(RunThrowing(std::runtime_error("a stone")), 1);
  EXPECT_THAT(err.Stop(),
              AllOf(HasSubstr("race: No such device\nrace: this is a bug"),
                    HasSubstr("race: a stone\nrace: this is a bug")));
}

// Runs a program about training, one of whose threads finds no memory.
void ExhaustMemory(std::string option) {
  CLI::App app("A mill", "race");
  FinishOptions(app);
  std::string name = "race";
  char* argv[] = {name.data(), option.data()};
  RunProgram(
      app, 2, argv,
      [] {
        std::thread([] { throw std::bad_alloc(); }).join();
        return absl::OkStatus();
      },
      LogComponent::kTrain);
}

TEST(OutOfMemoryDeathTest, OnAnyThreadEndsTheProgramWithAMessage) {
  EXPECT_EXIT(
      ExhaustMemory("--log-format=text"), ::testing::ExitedWithCode(1),
      "race: out of memory\nrace: free memory, or ask for less at a time\n");
}

TEST(OutOfMemoryDeathTest, IsAnEventOfTheLogInJson) {
  EXPECT_EXIT(
      ExhaustMemory("--log-format=json"), ::testing::ExitedWithCode(1),
      "^\\{\"time\":\"2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:"
      "[0-5][0-9]\\.[0-9]{3}Z\",\"level\":\"error\",\"component\":\"train\","
      "\"message\":\"out of memory\",\"advice\":\"free memory, or ask for less "
      "at a time\"\\}\n$");
}

TEST(OwnComponentTest, IsThatOfEventsThatNameNone) {
  for (const auto& [component, line] : std::map<LogComponent, std::string>{
           {LogComponent::kCli, "Z info cli well\n"},
           {LogComponent::kServer, "Z info server well\n"}}) {
    CLI::App app("A mill", "race");
    FinishOptions(app);
    std::string name = "race";
    char* argv[] = {name.data()};
    CapturedOutput err(STDERR_FILENO);
    const auto body = [] {
      LogInfo("well");
      return absl::OkStatus();
    };
    EXPECT_EQ(RunProgram(app, 1, argv, body, component), 0);
    EXPECT_THAT(err.Stop(), HasSubstr(line));
  }
}

}  // namespace
}  // namespace millrace
