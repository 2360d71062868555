// SPDX-License-Identifier: Apache-2.0
// What millrace-train does with its group, before it trains.
#include "client/train/main/train_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/captured_output.h"

namespace millrace::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Otherwise this program would start again.
    setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "SLURM_NTASKS"}) {
      unsetenv(name);
    }
  }
  // As torchrun does for rank 1 of 3 on two hosts.
  static void SetUpGroup() {
    for (const auto& [name, value] :
         std::map<const char*, const char*>{{"RANK", "1"},
                                            {"WORLD_SIZE", "3"},
                                            {"LOCAL_WORLD_SIZE", "2"},
                                            {"MASTER_ADDR", "127.0.0.1"},
                                            {"MASTER_PORT", "1"}}) {
      setenv(name, value, 1);
    }
  }
  void TearDown() override { SetUp(); }

  // Runs `millrace-train ARGS`, keeps its output and returns its exit status.
  int Run(std::vector<std::string> args) {
    args.insert(args.begin(), "millrace-train");
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    CapturedOutput out(STDOUT_FILENO);
    CapturedOutput err(STDERR_FILENO);
    const int status =
        RunTrainProgram(static_cast<int>(args.size()), argv.data());
    out_ = out.Stop();
    err_ = err.Stop();
    return status;
  }

  std::string out_;
  std::string err_;
};

// If a change of help.txt is meant, copy the file that this names over it.
TEST_F(TrainProgramTest, HelpIsAsDocumented) {
  ASSERT_EQ(Run({"--help"}), 0) << err_;
  std::ifstream file(MILLRACE_SOURCE_DIR "/tests/train/main/help.txt");
  const std::string expected(std::istreambuf_iterator<char>(file), {});
  const std::string now = ::testing::TempDir() + "millrace_train_help.txt";
  if (out_ != expected) std::ofstream(now) << out_;
  EXPECT_EQ(out_, expected) << now;
}

TEST_F(TrainProgramTest, BatchesAreDividedAmongTheRanksOfTheGroup) {
  const std::vector<std::string> args = {
      "--store", "/none", "--fanouts", "5", "--global-batch-size", "4"};
  const std::string refusal =
      "millrace-train: --global-batch-size 4 is not divisible by the world "
      "size 3; use a multiple of it\n";
  SetUpGroup();
  EXPECT_EQ(Run(args), 2);
  EXPECT_THAT(err_, HasSubstr(refusal));
  EXPECT_THAT(err_, HasSubstr(" rank 1 of 3 (RANK, WORLD_SIZE), which meet at "
                              "127.0.0.1:1 (MASTER_ADDR, MASTER_PORT)\n"));
  // Workers are a group of their own. It is refused before they start.
  std::vector<std::string> workers = args;
  workers.insert(workers.end(), {"--workers", "3"});
  SetUp();
  EXPECT_EQ(Run(workers), 2);
  EXPECT_THAT(err_, HasSubstr(refusal));
  // One worker is alone, whatever the variables say.
  SetUpGroup();
  workers = args;
  workers.insert(workers.end(), {"--workers", "1", "--global-batch-size", "5",
                                 "--layers", "2"});
  EXPECT_EQ(Run(workers), 2);
  EXPECT_THAT(err_, HasSubstr("--layers 2: does not fit the 1 number of "
                              "fanouts"));
  EXPECT_THAT(err_, Not(HasSubstr("which meet at")));
}

TEST_F(TrainProgramTest, SecretsAreReadForGroupsOfTheEnvironment) {
  SetUpGroup();
  EXPECT_EQ(Run({"--store", "/none", "--fanouts", "5", "--rendezvous-secret",
                 "/none/secret"}),
            1);
  EXPECT_THAT(err_, HasSubstr("/none/secret"));
  unsetenv("WORLD_SIZE");
  EXPECT_EQ(Run({"--store", "/none", "--fanouts", "5"}), 1);
  EXPECT_THAT(err_, HasSubstr("RANK is set but WORLD_SIZE is not"));
}

// LibTorch sets the numbers of its threads here, so no other test may come so
// far.
TEST_F(TrainProgramTest, FailuresOfTheSourceAreShown) {
  EXPECT_EQ(Run({"--store", "/none/store", "--fanouts", "5", "--threads", "2"}),
            1);
  EXPECT_THAT(
      err_,
      ContainsRegex(" info train starting version=[0-9.]+ source=\"store "
                    "/none/store\" rank=0 world_size=1 device=cpu threads=2 "
                    "prefetch_batches=4 prefetch_bytes=1073741824 "
                    "graph_memory=mmap feature_memory=mmap\n"
                    "millrace-train: no dataset or store at /none/store: "));
}

}  // namespace
}  // namespace millrace::testing
