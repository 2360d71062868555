// SPDX-License-Identifier: Apache-2.0
// What millrace-train does with the devices of its ranks, which are processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/train/main/cuda_program.h"
#include "client/train/main/train_program.h"
#include "client/train/run/train_words.h"
#include "common/base/field_error.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "tests/support/captured_output.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/free_port.h"
#include "tests/support/test_directory.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

using Opened = absl::StatusOr<std::unique_ptr<Accelerator>>;

// A kind of device, none of which works.
AcceleratorKind BrokenKind(const absl::Status& why) {
  return {
      .name = "broken",
      .backend = Backend::kNccl,
      .count = [why] { return why; },
      .open = [why](const GroupAddress&, Backend) -> Opened { return why; }};
}

struct Ended {
  int status = 0;
  std::string errors;
};

Ended Train(std::vector<std::string> args,
            const std::vector<AcceleratorKind>& kinds,
            const std::string& store = "/none") {
  args.insert(args.begin(), {"millrace-train", "--store", store, "--fanouts",
                             "5", "--threads", "1"});
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  CapturedOutput errors(STDERR_FILENO);
  const int status =
      RunTrainProgram(static_cast<int>(args.size()), argv.data(), kinds);
  return {status, errors.Stop()};
}

// Variables of a launcher, except for the rank.
std::map<std::string, std::string> Group(int world) {
  return {{"OMP_WAIT_POLICY", "PASSIVE"},
          {"WORLD_SIZE", std::to_string(world)},
          {"LOCAL_WORLD_SIZE", std::to_string(world)},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(FreePort())}};
}

// The others would wait for its start for minutes.
TEST(DeviceRanksTest, OtherRanksLearnThatADeviceCannotBeOpened) {
  const std::filesystem::path store = TestDirectory("device_ranks") / "store";
  const auto run = [&store](ForkedRank& rank) {
    setenv("RANK", std::to_string(rank.rank()).c_str(), 1);
    const SteadyTime start = SteadyNow();
    const bool broken = rank.rank() == 1;
    if (!broken) WriteStore(ClassGraph(100, 50), store, 1);
    const AcceleratorKind kind =
        BrokenKind(WithReason(absl::UnavailableError("device 7 has failed"),
                              Reason{"gpu_has_failed"}));
    const Ended ended = broken ? Train({"--device", "broken"}, {kind})
                               : Train({}, {}, store.string());
    EXPECT_EQ(ended.status, 1);
    EXPECT_LT(SteadyNow() - start, absl::Seconds(30));
    EXPECT_THAT(ended.errors, HasSubstr("device 7 has failed"));
    EXPECT_THAT(ended.errors, HasSubstr("CUDA_VISIBLE_DEVICES"));
  };
  EXPECT_THAT(RunRanks({.world = 2, .environment = Group(2)}, run), Each(0));
}

// Nothing is opened for a wrong option.
TEST(DeviceRanksTest, WrongOptionsShowFirst) {
  const auto run = [](ForkedRank&) {
    for (const char* const workers : {"1", "gpus"}) {
      const Ended ended =
          Train({"--device", "broken", "--workers", workers, "--metric", "mrr"},
                {BrokenKind(absl::UnavailableError("opened"))});
      EXPECT_EQ(ended.status, 2);
      EXPECT_THAT(ended.errors, Not(HasSubstr("opened")));
    }
  };
  EXPECT_THAT(RunRanks({.world = 1, .environment = Group(1)}, run), Each(0));
}

TEST(DeviceRanksTest, WorkersForEachGpuNeedAGpu) {
  const auto run = [](ForkedRank&) {
    const Ended ended =
        Train({"--workers", "gpus"},
              {BrokenKind(absl::FailedPreconditionError("no driver\nadvice"))});
    EXPECT_EQ(ended.status, 1);
    EXPECT_EQ(ended.errors,
              "millrace-train: no driver\nmillrace-train: advice\n");
  };
  EXPECT_THAT(RunRanks({.world = 1, .environment = Group(1)}, run), Each(0));
}

TEST(DeviceRanksTest, BatchesAreDividedAmongTheWorkersOfGpus) {
  const auto run = [](ForkedRank&) {
    AcceleratorKind kind = BrokenKind(absl::UnavailableError("opened"));
    kind.count = [] { return 3; };
    const Ended ended =
        Train({"--workers", "gpus", "--global-batch-size", "4"}, {kind});
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.errors,
                HasSubstr("--global-batch-size 4 is not divisible "
                          "by the world size 3"));
    EXPECT_THAT(ended.errors, Not(HasSubstr("opened")));
  };
  EXPECT_THAT(RunRanks({.world = 1, .environment = Group(1)}, run), Each(0));
}

// A kind that says for which rank, and with what, it is opened.
AcceleratorKind SayingKind() {
  AcceleratorKind kind = BrokenKind(absl::UnavailableError(""));
  kind.open = [](const GroupAddress& rank, Backend backend) -> Opened {
    return absl::UnavailableError(StrCat(rank.local_rank.value_or(-1), " of ",
                                         rank.world, " opens ",
                                         WordFor(kBackendWords, backend)));
  };
  return kind;
}

TEST(DeviceRanksTest, OpensTheDeviceWithTheBackendThatIsAskedFor) {
  using Words = std::vector<std::string>;
  for (const auto& [backend, want] :
       {std::pair(Words{}, "opens nccl"),
        std::pair(Words{"--backend", "nccl"}, "opens nccl"),
        std::pair(Words{"--backend", "gloo"}, "opens gloo")}) {
    Words words = {"--device", "broken", "--workers", "1"};
    words.insert(words.end(), backend.begin(), backend.end());
    const auto run = [&, want = want](ForkedRank&) {
      const Ended ended = Train(words, {SayingKind()});
      EXPECT_EQ(ended.status, 1);
      EXPECT_THAT(ended.errors, HasSubstr(want));
    };
    EXPECT_THAT(RunRanks({.world = 1, .environment = Group(1)}, run), Each(0));
  }
}

TEST(DeviceRanksTest, ProbesTheDeviceOfItsRank) {
  std::map<std::string, std::string> group = Group(3);
  group["RANK"] = group["LOCAL_RANK"] = "2";
  const auto run = [](ForkedRank&) {
    using Words = std::vector<const char*>;
    for (const auto& [words, want] :
         {std::pair(Words{"p", "--probe-device"}, "2 of 3"),
          std::pair(Words{"p", "--probe-device", "alone"}, "-1 of 1")}) {
      char** const argv = const_cast<char**>(words.data());
      const auto count = static_cast<int>(words.size());
      CapturedOutput errors(STDERR_FILENO);
      EXPECT_TRUE(IsProbe(count, argv));
      EXPECT_EQ(AnswerProbe(count, argv, SayingKind()), 1);
      EXPECT_EQ(errors.Stop(),
                StrCat("millrace-train: ", want, " opens nccl\n"));
    }
  };
  EXPECT_THAT(RunRanks({.world = 1, .environment = group}, run), Each(0));
}

// One worker, which then looks for its store.
TEST(DeviceRanksTest, AutoTrainsOnTheCpuByGloo) {
  const auto run = [](ForkedRank&) {
    const Ended ended =
        Train({"--workers", "gpus", "--device", "auto", "--backend", "nccl"},
              {BrokenKind(absl::FailedPreconditionError("no driver\nadvice"))});
    EXPECT_EQ(ended.status, 1);
    EXPECT_THAT(
        ended.errors,
        HasSubstr("training on the CPU, with gloo instead of nccl why=\"no "
                  "driver\"\n"));
    EXPECT_THAT(ended.errors, HasSubstr("no dataset or store at /none"));
  };
  EXPECT_THAT(RunRanks({.world = 1, .environment = Group(1)}, run), Each(0));
}

}  // namespace
}  // namespace millrace::testing
