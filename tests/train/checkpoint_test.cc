// SPDX-License-Identifier: Apache-2.0
#include "client/train/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/store_builder.h"

namespace millrace::testing {
namespace {

Checkpoint Sample() {
  Checkpoint checkpoint;
  checkpoint.model = {
      {"convs.0.bias", at::arange(4, at::kFloat)},
      {"norms.0.module.num_batches_tracked", at::full({}, 7, at::kLong)}};
  checkpoint.optimizer = {{"exp_avg.convs.0.bias", at::full({4}, 0.5)}};
  checkpoint.identity = {{"--fanouts", "15,10"}, {"--batch-size", "32"}};
  checkpoint.counters = {{"epoch", 3}, {"next_batch", int64_t{1} << 40}};
  checkpoint.values = {{"loss_sum", 0.1}};
  return checkpoint;
}

TEST(CheckpointTest, ReadsWhatItWrote) {
  const std::vector<char> bytes = SerializeCheckpoint(Sample()).value();
  const Checkpoint read = ParseCheckpoint(bytes, "file").value();
  const Checkpoint want = Sample();
  ASSERT_EQ(read.model.size(), 2u);
  EXPECT_EQ(read.model[0].name, "convs.0.bias");
  EXPECT_TRUE(read.model[0].tensor.equal(want.model[0].tensor));
  EXPECT_EQ(read.model[1].tensor.item().toLong(), 7);
  EXPECT_TRUE(read.optimizer[0].tensor.equal(want.optimizer[0].tensor));
  EXPECT_EQ(read.identity, want.identity);
  EXPECT_EQ(read.counters, want.counters);
  EXPECT_EQ(read.values, want.values);
}

TEST(CheckpointTest, DamageIsDataLoss) {
  std::vector<char> bytes = SerializeCheckpoint(Sample()).value();
  bytes.resize(bytes.size() / 2);
  const auto read = ParseCheckpoint(bytes, "/run/last.pt");
  EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(read.status().message().find("/run/last.pt"),
            absl::string_view::npos);
}

TEST(CheckpointTest, NamesTheOptionThatDiffers) {
  auto wanted = Sample().identity;
  EXPECT_TRUE(CheckSameIdentity(Sample().identity, wanted).ok());
  wanted["--batch-size"] = "64";
  const absl::Status status = CheckSameIdentity(Sample().identity, wanted);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("--batch-size = 32"), absl::string_view::npos)
      << status;
}

TEST(CheckpointTest, ReplacesTheFileWhole) {
  const std::filesystem::path path =
      TestDirectory("replace") / "folder" / "last.pt";
  ASSERT_TRUE(WriteFileAtomically(path, {'o', 'l', 'd', '!'}).ok());
  ASSERT_TRUE(WriteFileAtomically(path, {'n', 'e', 'w'}).ok());
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "new");
  EXPECT_EQ(std::distance(
                std::filesystem::directory_iterator(path.parent_path()), {}),
            1);
}

}  // namespace
}  // namespace millrace::testing
