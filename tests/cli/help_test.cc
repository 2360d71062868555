// SPDX-License-Identifier: Apache-2.0
// What the help of each command says: its options, their values, defaults and
// what they exclude. If a change of help.txt is meant, copy the file that the
// test names over it.
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/cli/command_runner.h"

namespace millrace::testing {
namespace {

class HelpTest : public CommandTest {
 protected:
  // The help of a command; names a section that an earlier command has too.
  std::string HelpOf(const std::string& command) {
    std::vector<std::string> args = {"help"};
    for (const auto word : absl::StrSplit(command, ' ', absl::SkipEmpty())) {
      args.emplace_back(word);
    }
    EXPECT_EQ(Run(args), 0) << err_;
    std::string text = absl::StrCat("$ millrace help ", command, "\n");
    const std::vector<std::string> sections = absl::StrSplit(out_, "\n\n");
    for (const std::string& section : sections) {
      const bool is_new = sections_.insert(section).second;
      const std::string title = section.substr(0, section.find('\n'));
      absl::StrAppend(&text, is_new ? section : title + " as above", "\n\n");
    }
    return text;
  }

  std::set<std::string> sections_;
};

TEST_F(HelpTest, IsAsDocumented) {
  std::string help;
  for (const char* command : {"",
                              "import",
                              "import ogb",
                              "import npy",
                              "import tu",
                              "import triples",
                              "import reddit",
                              "import pyg-partitions",
                              "import glt-partitions",
                              "import fake",
                              "partition",
                              "split",
                              "inspect",
                              "verify",
                              "sample",
                              "digest",
                              "status",
                              "up",
                              "bench",
                              "plan",
                              "lineage",
                              "completion",
                              "help"}) {
    help += HelpOf(command);
  }
  std::ifstream file(MILLRACE_SOURCE_DIR "/tests/cli/help.txt");
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  const std::string now = ::testing::TempDir() + "millrace_help.txt";
  if (help != expected) std::ofstream(now) << help;
  EXPECT_EQ(help, expected) << now;
}

struct Limit {
  std::vector<std::string> command;
  std::string option;
  std::vector<std::string> good, bad;
  std::string expected;  // of what the bad values are not
};

// Commands that fail with 1, as there is no such store or certificate, and with
// 2 if a value is refused.
std::vector<Limit> Limits() {
  const std::vector<std::string> sample = {"sample", "--store", "/none",
                                           "--fanouts", "1"};
  const std::vector<std::string> fleet = {
      "sample",    "--servers", "127.0.0.1:1", "--tls-ca", "/none",
      "--fanouts", "1"};
  std::vector<std::string> bench = sample;
  bench[0] = "bench";
  return {
      {sample, "--batch-size", {"1"}, {"0"}, "a whole number of at least 1"},
      {sample,
       "--global-batch-size",
       {"1"},
       {"0"},
       "a whole number of at least 1"},
      {sample,
       "--prefetch-batches",
       {"1"},
       {"0"},
       "a whole number of at least 1"},
      {sample,
       "--threads",
       {"0", "1024"},
       {"-1", "1025"},
       "a whole number from 0 to 1024"},
      {fleet,
       "--cache-ratio",
       {"0", "1"},
       {"-0.01", "1.01"},
       "a number from 0 to 1"},
      {bench,
       "--batches",
       {"1", "1073741824"},
       {"0", "1073741825"},
       "a whole number from 1 to 1073741824"},
      {{"import", "tu", "/none", "--out", "/none/out"},
       "--folds",
       {"3", "1000"},
       {"2", "1001"},
       "a whole number from 3 to 1000"},
      {{"up", "/none"},
       "--servers",
       {"0", "1000"},
       {"-1", "1001"},
       "a whole number from 0 to 1000"}};
}

TEST_F(HelpTest, NumbersHaveLimits) {
  for (const Limit& limit : Limits()) {
    const auto run = [&](const std::string& value) {
      std::vector<std::string> args = limit.command;
      args.insert(args.end(), {limit.option, value});
      return Run(args);
    };
    for (const std::string& value : limit.good) {
      EXPECT_EQ(run(value), 1) << limit.option << " " << value << ": " << err_;
    }
    for (const std::string& value : limit.bad) {
      EXPECT_EQ(run(value), 2) << limit.option << " " << value;
      EXPECT_NE(err_.find(absl::StrCat(limit.option, ": \"", value,
                                       "\" is not ", limit.expected, "\n")),
                std::string::npos)
          << err_;
    }
  }
}

}  // namespace
}  // namespace millrace::testing
