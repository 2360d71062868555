// SPDX-License-Identifier: Apache-2.0
#include "common/cli/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
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
  EXPECT_THAT(err_,
              AllOf(HasSubstr("race does not read MILLRACE_LSIT; did you mean "
                              "MILLRACE_LIST?"),
                    HasSubstr("does not read MILLRACE_WHEELS; did you mean "
                              "MILLRACE_MILL_GRIND_WHEELS?")));
  EXPECT_EQ(wheels_, 3);
  // Processes that the program starts do not see it either.
  EXPECT_EQ(std::getenv("MILLRACE_LSIT"), nullptr);
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

TEST(OutOfMemoryDeathTest, OnAnyThreadEndsTheProgramWithAMessage) {
  EXPECT_EXIT(
      {
        CLI::App app("A mill", "race");
        FinishOptions(app);
        std::string name = "race";
        char* argv[] = {name.data()};
        RunProgram(app, 1, argv, [] {
          std::thread([] { throw std::bad_alloc(); }).join();
          return absl::OkStatus();
        });
      },
      ::testing::ExitedWithCode(1),
      "race: out of memory\nrace: free memory, or ask for less at a time\n");
}

}  // namespace
}  // namespace millrace
