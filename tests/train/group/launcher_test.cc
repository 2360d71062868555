// SPDX-License-Identifier: Apache-2.0
// The launcher starts this program again, with the arguments of one test, which
// then does as a rank what the test says.
#include "client/train/group/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/steady_time.h"
#include "tests/support/captured_output.h"
#include "tests/support/store_builder.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "(none)" : text;
}

// Runs the current test in `workers` processes.
absl::Status RunThisTest(int workers, int threads) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string filter = absl::StrCat("--gtest_filter=", test->test_suite_name(),
                                    ".", test->name());
  std::string program = "launcher_test";
  std::string brief = "--gtest_brief=1";
  char* argv[] = {program.data(), filter.data(), brief.data(), nullptr};
  return RunWorkers(argv, workers, threads);
}

// Ends this process as a rank does.
[[noreturn]] void End(int status) {
  std::fflush(nullptr);
  _exit(status);
}

TEST(LauncherTest, GivesEachRankItsPlace) {
  if (IsWorker()) {
    const std::string rank = Variable("RANK");
    std::fprintf(
        stderr, "%s %s %s %s %s [%s] %s %s %s %zu\npart of a line",
        rank.c_str(), Variable("LOCAL_RANK").c_str(),
        Variable("WORLD_SIZE").c_str(), Variable("LOCAL_WORLD_SIZE").c_str(),
        Variable("MASTER_ADDR").c_str(),
        Variable("TORCHELASTIC_USE_AGENT_STORE").c_str(),
        Variable("OMP_NUM_THREADS").c_str(),
        Variable("OMP_WAIT_POLICY").c_str(),
        Variable("NCCL_SOCKET_IFNAME").c_str(), LauncherSecret().size());
    End(0);
  }
  EXPECT_EQ(LauncherSecret(), "");
  CapturedOutput output(STDERR_FILENO);
  const absl::Status status = RunThisTest(3, 5);
  const std::string text = output.Stop();
  EXPECT_TRUE(status.ok()) << status;
  // Rank 0 has our stderr, the others' lines say whose they are.
  EXPECT_THAT(text, HasSubstr("0 0 3 3 127.0.0.1 [] 5 PASSIVE lo 64\npart of"));
  EXPECT_THAT(text,
              HasSubstr("[rank 1] 1 1 3 3 127.0.0.1 [] 5 PASSIVE lo 64\n"));
  EXPECT_THAT(text,
              HasSubstr("[rank 2] 2 2 3 3 127.0.0.1 [] 5 PASSIVE lo 64\n"));
  EXPECT_THAT(text, HasSubstr("[rank 1] part of a line\n"));
}

TEST(LauncherTest, EventsInJsonHaveTheirRank) {
  if (IsWorker()) {
    std::fprintf(stderr, "{\"message\":\"an event\"}\nfrom a library");
    End(0);
  }
  SetLogFormat(LogFormat::kJson);
  CapturedOutput output(STDERR_FILENO);
  const absl::Status status = RunThisTest(2, 1);
  const std::string text = output.Stop();
  SetLogFormat(LogFormat::kText);
  EXPECT_TRUE(status.ok()) << status;
  for (const char* rank : {"0", "1"}) {
    const std::string start = absl::StrCat("{\"rank\":", rank, ",");
    EXPECT_THAT(text,
                HasSubstr(absl::StrCat(start, "\"message\":\"an event\"}\n")));
    EXPECT_THAT(text, HasSubstr(absl::StrCat(start, "\"time\":\"")));
  }
  EXPECT_THAT(text, HasSubstr("\"component\":\"train\",\"message\":\"from a "
                              "library\"}\n"));
}

TEST(LauncherTest, LeavesTheInterfaceOfNcclToTheUser) {
  if (IsWorker()) {
    std::fprintf(stderr, "%s\n", Variable("NCCL_SOCKET_IFNAME").c_str());
    End(0);
  }
  setenv("NCCL_SOCKET_IFNAME", "eth7", 1);
  CapturedOutput output(STDERR_FILENO);
  const absl::Status status = RunThisTest(2, 1);
  const std::string text = output.Stop();
  unsetenv("NCCL_SOCKET_IFNAME");
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(text, HasSubstr("[rank 1] eth7\n"));
}

// A folder that the ranks know too.
constexpr char kFolder[] = "LAUNCHER_TEST_FOLDER";
std::string SharedFolder(const char* name) {
  const std::string folder = TestDirectory(name).string();
  setenv(kFolder, folder.c_str(), 1);
  return folder;
}

TEST(LauncherTest, RanksShareASecretAndAPort) {
  if (IsWorker()) {
    std::ofstream(Variable(kFolder) + "/" + Variable("RANK"))
        << LauncherSecret() << " " << Variable("MASTER_PORT");
    End(0);
  }
  const std::string folder = SharedFolder("launcher_secret");
  std::vector<std::string> seen;
  for (int start = 0; start < 2; ++start) {
    ASSERT_TRUE(RunThisTest(2, 1).ok());
    for (const char* rank : {"/0", "/1"}) {
      std::ifstream file(folder + rank);
      std::string secret, port;
      file >> secret >> port;
      EXPECT_EQ(secret.size(), 64u);
      EXPECT_NE(port, "0");
      seen.push_back(secret + " " + port);
    }
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[2], seen[3]);
  // Each start has another secret.
  EXPECT_NE(seen[0].substr(0, 64), seen[2].substr(0, 64));
}

TEST(LauncherTest, DividesTheCoresAmongRanks) {
  if (IsWorker()) {
    std::fprintf(stderr, "threads %s\n", Variable("OMP_NUM_THREADS").c_str());
    End(0);
  }
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  for (const int workers : {1, 2}) {
    CapturedOutput output(STDERR_FILENO);
    ASSERT_TRUE(RunThisTest(workers, 0).ok());
    EXPECT_THAT(output.Stop(),
                HasSubstr(absl::StrCat("threads ", std::max(1, cores / workers),
                                       "\n")));
  }
}

// The others would wait forever, also one that has written a line.
TEST(LauncherTest, ARankThatFailsEndsTheOthers) {
  if (IsWorker()) {
    const std::string ready = Variable(kFolder) + "/ready";
    if (Variable("RANK") == "1") {
      std::ifstream file(ready);  // waits for rank 2 to open it
      End(7);
    }
    if (Variable("RANK") == "2") {
      std::fputs("a line\n", stderr);
      std::ofstream file(ready);
    }
    while (true) pause();
  }
  const std::string folder = SharedFolder("launcher_failure");
  ASSERT_EQ(mkfifo((folder + "/ready").c_str(), 0600), 0);
  const absl::Status status = RunThisTest(3, 1);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(),
            "rank 1 of 3 ended with status 7; the other ranks were stopped");
  EXPECT_EQ(ReasonOf(status), "rank_ended");
}

TEST(LauncherTest, ARankThatASignalEndedHasFailed) {
  if (IsWorker()) {
    if (Variable("RANK") == "0") raise(SIGKILL);
    // It is stopped, so it must be woken up to end.
    raise(SIGSTOP);
    while (true) pause();
  }
  const absl::Status status = RunThisTest(2, 1);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 0 of 2 "));
}

// It is killed after three seconds, and no sooner.
TEST(LauncherTest, ARankThatDoesNotEndIsKilled) {
  if (IsWorker()) {
    const std::string ready = Variable(kFolder) + "/ready";
    if (Variable("RANK") == "0") {
      std::ifstream file(ready);  // waits for rank 1 to open it
      End(7);
    }
    signal(SIGTERM, SIG_IGN);
    std::ofstream file(ready);
    // It outlives the group, but not for long, if it is not killed.
    sleep(20);
    End(0);
  }
  const std::string folder = SharedFolder("launcher_kill");
  ASSERT_EQ(mkfifo((folder + "/ready").c_str(), 0600), 0);
  const SteadyTime start = SteadyNow();
  const absl::Status status = RunThisTest(2, 1);
  EXPECT_GE(SteadyNow() - start, absl::Seconds(3));
  EXPECT_LT(SteadyNow() - start, absl::Seconds(15));
  EXPECT_EQ(status.message(),
            "rank 0 of 2 ended with status 7; the other ranks were stopped");
}

// A supervisor must not start the group again.
TEST(LauncherTest, WrongUsageOfARankIsWrongUsage) {
  if (IsWorker()) {
    // Rank 0 fails because rank 1 leaves.
    if (Variable("RANK") == "1") End(2);
    signal(SIGTERM, [](int) { _exit(1); });
    while (true) pause();
  }
  const absl::Status status = RunThisTest(2, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(),
            "workers: rank 1 of 2 ended with status 2; the other ranks were "
            "stopped\ncorrect what its own message names");
}

// Rank 0 fails once rank 1 is ready to end by the signal that follows.
TEST(LauncherTest, WrongUsageCountsMoreThanAnEarlierFailure) {
  if (IsWorker()) {
    const std::string ready = Variable(kFolder) + "/ready";
    if (Variable("RANK") == "0") {
      std::ifstream file(ready);  // waits for rank 1 to open it
      End(1);
    }
    signal(SIGTERM, [](int) { _exit(2); });
    std::ofstream file(ready);
    while (true) pause();
  }
  const std::string folder = SharedFolder("launcher_usage");
  ASSERT_EQ(mkfifo((folder + "/ready").c_str(), 0600), 0);
  const absl::Status status = RunThisTest(2, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rank 1 of 2 ended with status 2"));
}

void InterruptAndRun() {
  InstallInterruptHandler();
  raise(SIGTERM);
  const absl::Status status = RunThisTest(2, 1);
  End(absl::IsCancelled(status) ? 0 : 1);
}

TEST(LauncherDeathTest, PassesOnAnInterrupt) {
  if (IsWorker()) {
    while (true) pause();
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(InterruptAndRun(), ::testing::ExitedWithCode(0), "");
}

TEST(LauncherTest, RefusesMoreRanksThanMemoryHolds) {
  const absl::Status status = RunThisTest(2'000'000, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  // 50 MiB each.
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("starting 2000000 workers needs 95.4 TiB of memory"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("\nuse fewer workers, or several hosts"));
}

TEST(LauncherTest, OnlyAChildOfTheLauncherIsAWorker) {
  EXPECT_FALSE(IsWorker());
  setenv("MILLRACE_LAUNCHER_PID", "none", 1);
  EXPECT_FALSE(IsWorker());
  setenv("MILLRACE_LAUNCHER_PID", absl::StrCat(getpid()).c_str(), 1);
  EXPECT_FALSE(IsWorker());
  setenv("MILLRACE_LAUNCHER_PID", absl::StrCat(getppid()).c_str(), 1);
  EXPECT_TRUE(IsWorker());
  unsetenv("MILLRACE_LAUNCHER_PID");
}

}  // namespace
}  // namespace millrace::testing
