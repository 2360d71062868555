// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/weights_file.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/train/run/checkpoint.h"
#include "tests/support/test_directory.h"

namespace millrace::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class WeightsFileTest : public DirectoryTest {
 protected:
  std::string Path() const { return (directory_ / "weights.pt").string(); }
  void Write(const std::string& bytes) const {
    std::ofstream(Path(), std::ios::binary) << bytes;
  }
  // A checkpoint of one tensor whose values are 0 to 99.
  std::string Checkpointed() const {
    Checkpoint checkpoint;
    checkpoint.model = {{"convs.0.bias", at::arange(100, at::kFloat)}};
    return SerializeCheckpoint(checkpoint).value();
  }
  absl::Status Refusal() const { return ReadWeights(Path()).status(); }
};

constexpr char kOtherFile[] =
    "\ngive a file written by torch.save(model.state_dict(), FILE), not the "
    "model itself, or a checkpoint";

TEST_F(WeightsFileTest, TheModelOfACheckpointIsTaken) {
  Write(Checkpointed());
  const auto weights = ReadWeights(Path());
  ASSERT_TRUE(weights.ok()) << weights.status();
  ASSERT_EQ(weights->size(), 1u);
  EXPECT_EQ((*weights)[0].name, "convs.0.bias");
  EXPECT_TRUE((*weights)[0].tensor.equal(at::arange(100, at::kFloat)));
}

TEST_F(WeightsFileTest, OtherFilesAreNoWeights) {
  Write("a text, not a zip file");
  EXPECT_TRUE(absl::IsInvalidArgument(Refusal())) << Refusal();
  EXPECT_THAT(std::string(Refusal().message()),
              ::testing::AllOf(StartsWith(Path()), EndsWith(kOtherFile)));
  std::filesystem::remove(Path());
  EXPECT_TRUE(absl::IsNotFound(Refusal())) << Refusal();
  EXPECT_THAT(std::string(Refusal().message()), Not(HasSubstr("torch.save")));
}

TEST_F(WeightsFileTest, DamagedFilesAreNotRead) {
  std::string bytes = Checkpointed();
  const float value = 50;
  const std::string inner(reinterpret_cast<const char*>(&value), sizeof(value));
  const size_t at = bytes.find(inner);
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  Write(bytes);
  const absl::Status status = Refusal();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith(Path()));
  EXPECT_THAT(std::string(status.message()),
              EndsWith("\nthe file is damaged: copy or save it again"));
}

}  // namespace
}  // namespace millrace::testing
