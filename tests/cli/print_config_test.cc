// SPDX-License-Identifier: Apache-2.0
#include "common/cli/print_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/cli/program.h"
#include "tests/support/captured_output.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A program `race` with the commands `mill` and `sell`, as it is after a run.
struct Race {
  explicit Race(std::vector<std::string> args, absl::Status result = {});

  int wheels = 3;
  std::string stone, list;
  std::vector<std::string> belts, pairs;
  int64_t memory = 0;
  bool wet = true, loud = false;
  std::string buyer;
  int status = -1;
  bool ran = false;
  std::string out, err;
};

Race::Race(std::vector<std::string> args, absl::Status result) {
  CLI::App app("A mill", "race");
  app.require_subcommand(1);
  CLI::App* mill = app.add_subcommand("mill", "Mills");
  mill->add_option("--wheels", wheels, "Wheels");
  mill->add_option("--stone", stone, "Stone");
  mill->add_option("--belts", belts, "Belts")->delimiter(',');
  mill->add_option("--memory", memory, "Memory")->transform(ByteSize());
  mill->add_flag("--wet,!--dry", wet, "Wet or dry");
  mill->add_flag("--loud", loud, "Loud");
  CLI::Option_group* names = mill->add_option_group("Names");
  names->add_option("--list", list, "Names");
  names->add_option("--pair", pairs, "NAME=VALUE, repeatable");
  CLI::App* sell = app.add_subcommand("sell", "Sells");
  sell->add_option("BUYER", buyer, "Buyer");
  FinishOptions(app);
  args.insert(args.begin(), "race");
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  testing::CapturedOutput output(STDOUT_FILENO), errors(STDERR_FILENO);
  status = RunProgram(app, static_cast<int>(argv.size()), argv.data(), [&] {
    ran = true;
    return result;
  });
  out = output.Stop();
  err = errors.Stop();
}

// A file for --config, removed at the end.
class ConfigPath {
 public:
  explicit ConfigPath(const std::string& text) { std::ofstream(path_) << text; }
  ~ConfigPath() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_ = ::testing::TempDir() + "print_config_test_" +
                            std::to_string(getpid()) + ".conf";
};

// The lines that set an option, without comments.
std::vector<std::string> Settings(const std::string& text) {
  std::vector<std::string> settings;
  for (const auto line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::string setting(line.substr(0, line.rfind("  # ")));
    if (setting[0] != '#') settings.push_back(setting);
  }
  return settings;
}

TEST(PrintConfigTest, PrintsGivenOptionsWithTheirOriginAndOthersAsComments) {
  setenv("MILLRACE_LIST", "a:1,b:2", 1);
  const Race race({"mill", "--print-config", "--wheels", "5", "--memory", "2K",
                   "--belts", "a,b c", "--pair", "x=1", "--pair", "y=2",
                   "--dry", "--wheels", "6"});
  unsetenv("MILLRACE_LIST");
  EXPECT_EQ(race.status, 0) << race.err;
  EXPECT_FALSE(race.ran);
  EXPECT_THAT(
      Settings(race.out),
      ElementsAre("[mill]", "wheels = 6", "belts = \"a,b c\"", "memory = 2048",
                  "wet = false", "list = a:1,b:2", "pair = x=1", "pair = y=2"));
  EXPECT_THAT(race.out, HasSubstr("\nwheels = 6  # command line\n"));
  EXPECT_THAT(race.out, HasSubstr("\nlist = a:1,b:2  # MILLRACE_LIST\n"));
  EXPECT_THAT(race.out, HasSubstr("\n# stone =\n"));
  EXPECT_THAT(race.out, HasSubstr("\n# loud = false\n"));
  EXPECT_THAT(race.out, HasSubstr("\n# log-level = info\n"));
}

TEST(PrintConfigTest, ReadBackItGivesTheSameValuesAndTheSameFile) {
  const std::vector<std::string> awkward = {
      "plain",   "two words",  "a#b", "[1,2]", "it's",     "say \"x\"",
      " blank ", "semi;colon", "\\",  "=",     "\xc3\xa9", "--list"};
  for (const std::string& stone : awkward) {
    const std::string given = StrCat("--stone=", stone);
    const Race first({"--log-level", "error", "mill", given, "--belts", "a,b c",
                      "--memory", "3M", "--dry", "--loud", "--pair", "x=15,10",
                      "--pair", "y=[1,2]", "--print-config"});
    ASSERT_EQ(first.status, 0) << first.err;
    const ConfigPath file(first.out);
    const Race run({"mill", "--config", file.path()});
    ASSERT_EQ(run.status, 0) << run.err << first.out;
    EXPECT_TRUE(run.ran);
    EXPECT_EQ(run.stone, stone);
    EXPECT_THAT(run.belts, ElementsAre("a", "b c"));
    EXPECT_EQ(run.memory, 3 << 20);
    EXPECT_FALSE(run.wet);
    EXPECT_TRUE(run.loud);
    EXPECT_THAT(run.pairs, ElementsAre("x=15,10", "y=[1,2]"));
    const Race again({"mill", "--config", file.path(), "--print-config"});
    EXPECT_EQ(Settings(again.out), Settings(first.out));
    EXPECT_THAT(again.out, HasSubstr(StrCat("wet = false  # ", file.path())));
  }
  SetLogLevel(LogLevel::kInfo);
}

TEST(PrintConfigTest, CommandLineOverridesTheFileInWhatIsPrinted) {
  const ConfigPath file("[mill]\nwheels = 4\nstone = old\n");
  const Race race(
      {"mill", "--config", file.path(), "--stone", "new", "--print-config"});
  EXPECT_THAT(Settings(race.out),
              ElementsAre("[mill]", "wheels = 4", "stone = new"));
  EXPECT_THAT(race.out, HasSubstr("stone = new  # command line\n"));
}

TEST(PrintConfigTest, RefusesWhatAFileCannotHold) {
  for (const std::string& stone :
       {std::string("'both\""), std::string("two\nlines")}) {
    const Race race({"mill", "--stone", stone, "--print-config"});
    EXPECT_EQ(race.status, 2) << race.out;
    EXPECT_THAT(race.err, HasSubstr("--stone "));
  }
}

TEST(PrintConfigTest, ArgumentsWithoutNamesAreComments) {
  const Race race({"sell", "miller & son", "--print-config"});
  EXPECT_EQ(race.status, 0);
  EXPECT_THAT(race.out, HasSubstr("# BUYER miller & son"));
  EXPECT_THAT(Settings(race.out), ElementsAre("[sell]"));
}

TEST(PrintConfigTest, IsNeitherAVariableNorAKey) {
  setenv("MILLRACE_PRINT_CONFIG", "true", 1);
  EXPECT_TRUE(Race({"mill"}).ran);
  unsetenv("MILLRACE_PRINT_CONFIG");
  const ConfigPath file("print-config = true\n");
  EXPECT_EQ(Race({"mill", "--config", file.path()}).status, 2);
}

// The two lines of a failure are one event.
TEST(LogFormatTest, ErrorsAreEventsOfAJsonLog) {
  for (const std::vector<std::string>& format :
       {std::vector<std::string>{"--log-format", "json"},
        std::vector<std::string>{"--log-format=json"}}) {
    std::vector<std::string> args = format;
    args.insert(args.end(), {"--log-level", "off", "mill"});
    const Race failed(args, absl::DataLossError("it \"cracked\"\nbuy\xff one"));
    EXPECT_EQ(failed.status, 1);
    const auto line = nlohmann::json::parse(failed.err);
    EXPECT_EQ(line["level"], "error");
    EXPECT_EQ(line["component"], "cli");
    EXPECT_EQ(line["message"], "it \"cracked\"");
    EXPECT_EQ(line["advice"], "buy\xef\xbf\xbd one");
    args.push_back("--whels");
    const Race wrong(args);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_THAT(nlohmann::json::parse(wrong.err)["message"],
                HasSubstr("--whels"));
  }
  SetLogLevel(LogLevel::kInfo);
}

TEST(LogFormatTest, VariableDecidesToo) {
  setenv("MILLRACE_LOG_FORMAT", "json", 1);
  const Race race({"mill", "--whels"});
  const Race text({"mill", "--whels", "--log-format", "text"});
  unsetenv("MILLRACE_LOG_FORMAT");
  EXPECT_EQ(nlohmann::json::parse(race.err)["level"], "error");
  EXPECT_THAT(text.err, AllOf(HasSubstr("race mill: "), Not(HasSubstr("{"))));
}

}  // namespace
}  // namespace millrace
