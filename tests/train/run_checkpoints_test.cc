// SPDX-License-Identifier: Apache-2.0
#include "client/train/run_checkpoints.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "client/train/run_state.h"
#include "common/base/field_error.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

// A checkpoint of `epoch`; -1: one that does not say its epoch.
std::shared_ptr<const Checkpoint> CheckpointOf(int64_t epoch) {
  auto checkpoint = std::make_shared<Checkpoint>();
  if (epoch >= 0) checkpoint->counters["epoch"] = epoch;
  return checkpoint;
}

class RunCheckpointsTest : public ::testing::Test {
 protected:
  RunCheckpointsTest() { options_.checkpoint = (folder_ / "run").string(); }

  // Opens the checkpoints of a group of one, and calls `use`.
  template <typename Use>
  void Open(Use use) const {
    RunRanks(1, [&](Collectives& collectives) {
      const auto opened =
          RunCheckpoints::Open(options_, collectives, WriteCheckpoint);
      ASSERT_TRUE(opened.ok()) << opened.status();
      use(**opened);
    });
  }
  void Write(const char* name, int64_t epoch) const {
    std::filesystem::create_directories(folder_ / "run");
    ASSERT_TRUE(
        WriteCheckpoint(folder_ / "run" / name, *CheckpointOf(epoch)).ok());
  }
  bool BestIsAhead(uint32_t epoch) const {
    bool ahead = false;
    Open([&](RunCheckpoints& checkpoints) {
      ahead = checkpoints.BestIsAhead(epoch).value();
    });
    return ahead;
  }

  const std::filesystem::path folder_ = TestDirectory("run_checkpoints");
  TrainOptions options_;
};

TEST_F(RunCheckpointsTest, ARunStartsFromItsLastModel) {
  options_.resume = true;
  for (const auto& [epochs, best, name] :
       {std::tuple(1u, false, "/last.pt"), std::tuple(1u, true, "/last.pt"),
        std::tuple(0u, false, "/last.pt"), std::tuple(0u, true, "/best.pt")}) {
    options_.epochs = epochs;
    options_.keep_best = best;
    Open([&, name = name](RunCheckpoints& checkpoints) {
      EXPECT_EQ(checkpoints.path(), options_.checkpoint + name);
    });
  }
}

TEST_F(RunCheckpointsTest, ReadsWhatItWrote) {
  options_.resume = true;
  Open([&](RunCheckpoints& checkpoints) {
    EXPECT_FALSE(checkpoints.Read().value().has_value());
    checkpoints.Save(CheckpointOf(3), /*best=*/false);
    EXPECT_TRUE(checkpoints.Finish().ok());
    EXPECT_TRUE(checkpoints.status().ok());
    EXPECT_EQ(checkpoints.Read().value()->counters.at("epoch"), 3);
  });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run" / "best.pt"));
}

TEST_F(RunCheckpointsTest, WithoutEpochsThereMustBeACheckpoint) {
  options_.resume = true;
  options_.epochs = 0;
  Open([&](RunCheckpoints& checkpoints) {
    const absl::Status status = checkpoints.Read().status();
    EXPECT_TRUE(absl::IsNotFound(status));
    EXPECT_EQ(status.message(),
              "no checkpoint " + options_.checkpoint + "/last.pt");
    EXPECT_EQ(ReasonOf(status), "no_checkpoint");
    EXPECT_TRUE(checkpoints.status().ok());
    EXPECT_TRUE(checkpoints.Finish().ok());
  });
  // It only reads, so it makes no folder either.
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(RunCheckpointsTest, EveryRankReadsRankZerosFile) {
  Write("last.pt", 5);
  options_.resume = true;
  RunRanks(2, [&](Collectives& collectives) {
    TrainOptions options = options_;
    if (collectives.rank() == 1) {
      options.checkpoint = (folder_ / "other").string();
    }
    const auto opened =
        RunCheckpoints::Open(options, collectives, WriteCheckpoint);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->Read().value()->counters.at("epoch"), 5);
    EXPECT_TRUE((*opened)->Finish().ok());
  });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other"));
}

TEST_F(RunCheckpointsTest, BestIsAheadIfItsEpochIsLater) {
  options_.resume = options_.keep_best = true;
  EXPECT_FALSE(BestIsAhead(0));  // there is none
  Write("best.pt", 4);
  EXPECT_TRUE(BestIsAhead(3));
  EXPECT_FALSE(BestIsAhead(4));
  EXPECT_FALSE(BestIsAhead(5));
  // Others do not write one.
  options_.keep_best = false;
  EXPECT_FALSE(BestIsAhead(3));
  options_.keep_best = true;
  options_.epochs = 0;
  EXPECT_FALSE(BestIsAhead(3));
}

TEST_F(RunCheckpointsTest, EveryRankKnowsThatBestIsAhead) {
  options_.resume = options_.keep_best = true;
  Write("best.pt", 4);
  RunRanks(2, [&](Collectives& collectives) {
    TrainOptions options = options_;
    if (collectives.rank() == 1) {
      options.checkpoint = (folder_ / "other").string();
    }
    const auto opened =
        RunCheckpoints::Open(options, collectives, WriteCheckpoint);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_TRUE((*opened)->BestIsAhead(3).value());
  });
}

TEST_F(RunCheckpointsTest, NamesABestModelWithoutItsEpoch) {
  options_.resume = options_.keep_best = true;
  Write("best.pt", -1);
  Open([&](RunCheckpoints& checkpoints) {
    const absl::Status status = checkpoints.BestIsAhead(1).status();
    EXPECT_TRUE(absl::IsDataLoss(status));
    EXPECT_EQ(status.message(), "checkpoint " + options_.checkpoint +
                                    "/best.pt: it lacks \"epoch\"");
  });
}

TEST_F(RunCheckpointsTest, ErrorsOfTheFolderNameTheField) {
  Write("last.pt", 1);
  RunRanks(1, [&](Collectives& collectives) {
    const absl::Status status =
        RunCheckpoints::Open(options_, collectives, WriteCheckpoint).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(), "checkpoint: " + options_.checkpoint +
                                    "/last.pt is from an earlier run");
    EXPECT_EQ(ReasonOf(status), "earlier_checkpoint");
  });
}

TEST_F(RunCheckpointsTest, TellsWhyNothingIsWritten) {
  RunRanks(1, [&](Collectives& collectives) {
    const auto opened = RunCheckpoints::Open(
        options_, collectives,
        [](const std::filesystem::path&, const Checkpoint&) {
          return absl::ResourceExhaustedError("full");
        });
    ASSERT_TRUE(opened.ok()) << opened.status();
    (*opened)->Save(CheckpointOf(1), /*best=*/false);
    EXPECT_EQ((*opened)->Finish().message(), "full");
    EXPECT_EQ((*opened)->status().message(), "full");
  });
}

TEST(InCheckpointTest, KeepsAllOfAnErrorButItsWords) {
  EXPECT_TRUE(InCheckpoint("a.pt", absl::OkStatus()).ok());
  const absl::Status status =
      InCheckpoint("a.pt", WithReason(absl::DataLossError("it lacks \"epoch\""),
                                      Reason{"unreadable_checkpoint"}));
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message(), "checkpoint a.pt: it lacks \"epoch\"");
  EXPECT_EQ(ReasonOf(status), "unreadable_checkpoint");
}

}  // namespace
}  // namespace millrace::testing
