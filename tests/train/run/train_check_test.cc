// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/train_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "common/file/file.h"
#include "tests/train/train_support.h"

namespace millrace::testing {
namespace {

using ::testing::StartsWith;

std::string MessageOf(const absl::Status& status) {
  return std::string(status.message());
}

TEST(TrainCheckTest, LayersMustBeAsManyAsHops) {
  EXPECT_TRUE(CheckLayers(2, 2, "fanouts").ok());
  absl::Status status = CheckLayers(3, 1, "fanouts");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "layers 3: does not fit the 1 number of fanouts");
  EXPECT_EQ(ReasonOf(status), "other_depth");
  status = CheckLayers(1, 2, "eval_fanouts");
  EXPECT_EQ(status.message(),
            "layers 1: does not fit the 2 numbers of eval_fanouts");
}

TEST(TrainCheckTest, TryingOutAFileLeavesNothingBehind) {
  const std::filesystem::path folder = TestDirectory("try_file");
  const std::filesystem::path path = folder / "out.npy";
  EXPECT_TRUE(CheckWritableFile("predict", path.string()).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  // A file that is there stays as it is; what a killed run left goes.
  std::ofstream(path) << "before";
  std::ofstream(path.string() + ".tmp") << "half of";
  EXPECT_TRUE(CheckWritableFile("predict", path.string()).ok());
  EXPECT_EQ(ReadFile(path, 100).value(), "before");
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".tmp"));
}

TEST(TrainCheckTest, RefusesWhatAFileCannotReplace) {
  const std::filesystem::path folder = TestDirectory("try_replace");
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  absl::Status status = CheckWritableFile("predict", pipe);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "predict: " + pipe +
                " is not a regular file\n"
                "name a file in a folder that can be written");
  status = CheckWritableFile("predict", folder.string());
  EXPECT_EQ(status.message(),
            "predict: " + folder.string() +
                " is a folder\nname a file in a folder that can be written");
  const std::string lost = (folder / "no" / "out.npy").string();
  status = CheckWritableFile("predict", lost);
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(GetFieldError(status)->field, "predict");
  EXPECT_TRUE(HasAdvice(status));
}

TEST(TrainCheckTest, MakesTheFolderOfCheckpoints) {
  const std::filesystem::path folder = TestDirectory("try_folder");
  EXPECT_TRUE(
      CheckWritableFolder("checkpoint", (folder / "a" / "b").string()).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "a" / "b"));
  std::ofstream(folder / "file") << "no folder";
  const absl::Status status =
      CheckWritableFolder("checkpoint", (folder / "file" / "c").string());
  EXPECT_THAT(MessageOf(status), StartsWith("checkpoint: "));
  EXPECT_THAT(MessageOf(status),
              ::testing::EndsWith("\nname a folder that can be made and "
                                  "written"));
  // last.pt would have to replace a folder.
  std::filesystem::create_directories(folder / "last.pt");
  EXPECT_EQ(CheckWritableFolder("checkpoint", folder.string()).message(),
            "checkpoint: " + (folder / "last.pt").string() +
                " is a folder\nname a file in a folder that can be written");
}

// The results of a check on two ranks.
std::vector<absl::Status> OnTwoRanks(
    const std::function<absl::Status(Collectives&)>& check) {
  std::vector<absl::Status> statuses(2);
  RunRanks(2, [&](Collectives& collectives) {
    statuses[collectives.rank()] = check(collectives);
  });
  return statuses;
}

TEST(TrainCheckTest, NamesTheRankWhoseFileDiffers) {
  const auto checked = [](uint64_t one) {
    return OnTwoRanks([one](Collectives& collectives) {
      return CheckSameOnAllRanks(collectives, "the order o.npy",
                                 collectives.rank() == 0 ? 7 : one);
    });
  };
  EXPECT_TRUE(checked(7)[1].ok());
  for (const uint64_t other : {uint64_t{8}, 7 | uint64_t{1} << 63}) {
    const std::vector<absl::Status> statuses = checked(other);
    EXPECT_TRUE(statuses[0].ok()) << statuses[0];
    EXPECT_TRUE(absl::IsFailedPrecondition(statuses[1]));
    EXPECT_EQ(statuses[1].message(),
              "the order o.npy of rank 1 differs from rank 0's\n"
              "copy rank 0's to all hosts");
  }
}

TEST(TrainCheckTest, NamesTheStoresOfBothRanks) {
  const auto checked = [](Manifest zero, Manifest one) {
    return OnTwoRanks([&](Collectives& collectives) {
      return CheckSameSource(collectives, collectives.rank() == 0 ? zero : one);
    });
  };
  Manifest manifest;
  manifest.dataset_fingerprint = "data";
  manifest.fingerprint = "store";
  EXPECT_TRUE(checked(manifest, manifest)[1].ok());
  Manifest other = manifest;
  other.fingerprint = "shelf";
  std::vector<absl::Status> statuses = checked(manifest, other);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(statuses[1]));
  EXPECT_EQ(statuses[1].message(),
            "rank 1 reads the store shelf, rank 0 the store store");
  EXPECT_EQ(ReasonOf(statuses[1]), "ranks_read_other_stores");
}

TEST(TrainCheckTest, NamesTheSplitsOfBothRanks) {
  const std::vector<absl::Status> statuses =
      OnTwoRanks([](Collectives& collectives) {
        return CheckSameSplits(
            collectives,
            {{"split train of node", "a"},
             {"split valid of node", collectives.rank() == 0 ? "b" : "c"}});
      });
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_EQ(statuses[1].message(),
            "rank 1 reads the splits train of node a, valid of node c, rank 0 "
            "the splits train of node a, valid of node b");
  EXPECT_EQ(ReasonOf(statuses[1]), "ranks_have_other_splits");
}

TEST(TrainCheckTest, NamesTheFieldThatDiffersInAGroup) {
  const auto message = [](const RunIdentity& zero, const RunIdentity& one) {
    const std::vector<absl::Status> statuses =
        OnTwoRanks([&](Collectives& collectives) {
          return CheckSameInGroup(collectives,
                                  collectives.rank() == 0 ? zero : one);
        });
    EXPECT_TRUE(statuses[0].ok()) << statuses[0];
    return MessageOf(statuses[1]);
  };
  EXPECT_EQ(message({{"--lr", "1"}}, {{"--lr", "1"}}), "");
  EXPECT_EQ(message({{"--hidden", "8"}, {"--lr", "1"}},
                    {{"--hidden", "8"}, {"--lr", "2"}}),
            "lr on rank 1: 2, but on rank 0: 1\n"
            "start every rank with the same options");
  EXPECT_EQ(message({{"--lr", "1"}}, {{"--lr", ""}}),
            "lr on rank 1: not given, but on rank 0: 1\n"
            "start every rank with the same options");
  EXPECT_EQ(message({}, {{"--lr", "2"}}),
            "lr on rank 1: 2, but on rank 0: not given\n"
            "start every rank with the same options");
}

}  // namespace
}  // namespace millrace::testing
