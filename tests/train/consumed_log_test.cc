// SPDX-License-Identifier: Apache-2.0
// Guarantees of the log of consumed batches: it belongs to one run, and it is
// on disk before a checkpoint relies on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "client/train/trainer.h"
#include "tests/train/train_support.h"

namespace {

// Syncs of files with this name fail.
std::atomic<const char*> failing_name{nullptr};
std::atomic<int> syncs{0};

}  // namespace

// Replaces the C library's function.
extern "C" int fdatasync(int fd) {
  std::error_code error;
  const std::string path = std::filesystem::read_symlink(
      "/proc/self/fd/" + std::to_string(fd), error);
  const char* failing = failing_name;
  if (failing != nullptr && absl::EndsWith(path, failing)) {
    errno = EIO;
    return -1;
  }
  ++syncs;
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ConsumedLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    syncs = 0;
    failing_name = nullptr;
  }

  // A run of one epoch that writes its checkpoints to the test's directory.
  TrainOptions Run(const char* log) const {
    TrainOptions options = SmallRun();
    options.epochs = 1;
    options.checkpoint = (folder_ / "checkpoint").string();
    options.checkpoint_every = 1;
    options.consumed_log = (folder_ / log).string();
    return options;
  }

  const std::filesystem::path folder_ = TestDirectory("consumed_log");
  const std::shared_ptr<BatchSource> source_ =
      Serve(ClassGraph(200, 64), "consumed_log_store");
};

TEST_F(ConsumedLogTest, NoCheckpointIsAheadOfTheLog) {
  failing_name = "/log";
  RunRanks(2, [&](Collectives& collectives) {
    auto trainer = Trainer::Create(source_, collectives, Run("log"));
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const absl::Status status = (*trainer)->Run();
    if (collectives.rank() == 0) {
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
      EXPECT_THAT(std::string(status.message()), HasSubstr("/log"));
    }
    collectives.Fail(status);
  });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoint/last.pt"));
}

// Rank 0 cannot sync the other rank's file, as if it were on another host.
TEST_F(ConsumedLogTest, NoCheckpointIsAheadOfAnotherHostsLog) {
  failing_name = "/1";
  RunRanks(2, [&](Collectives& collectives) {
    const char* log = collectives.rank() == 0 ? "0" : "1";
    auto trainer = Trainer::Create(source_, collectives, Run(log));
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const absl::Status status = (*trainer)->Run();
    EXPECT_FALSE(status.ok());
    collectives.Fail(status);
  });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "checkpoint/last.pt"));
  failing_name = nullptr;
  RunRanks(2, [&](Collectives& collectives) {
    const char* log = collectives.rank() == 0 ? "0" : "1";
    auto trainer = Trainer::Create(source_, collectives, Run(log));
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    EXPECT_TRUE((*trainer)->Run().ok());
  });
  EXPECT_TRUE(std::filesystem::exists(folder_ / "checkpoint/last.pt"));
}

TEST_F(ConsumedLogTest, IsNotSyncedWithoutCheckpoints) {
  TrainOptions options = Run("log");
  options.checkpoint.clear();
  options.checkpoint_every = 0;
  TrainRanks(2, source_, options);
  EXPECT_EQ(syncs, 0);
}

// Another run is refused whether or not it resumes, and whatever its checkpoint
// directory.
TEST_F(ConsumedLogTest, AnotherRunDoesNotOverwriteIt) {
  RunRanks(1, [&](Collectives& collectives) {
    const auto running = Trainer::Create(source_, collectives, Run("log"));
    ASSERT_TRUE(running.ok()) << running.status();
    ASSERT_TRUE((*running)->Run().ok());
    const auto bytes = std::filesystem::file_size(folder_ / "log");
    EXPECT_GT(bytes, 0u);
    for (const bool resume : {false, true}) {
      TrainOptions options = Run("log");
      options.checkpoint = (folder_ / "other").string();
      options.resume = resume;
      const absl::Status status =
          Trainer::Create(source_, collectives, options).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()),
                  AllOf(HasSubstr("another run"), HasSubstr("/log")));
    }
    EXPECT_EQ(std::filesystem::file_size(folder_ / "log"), bytes);
  });
}

}  // namespace
}  // namespace millrace::testing
