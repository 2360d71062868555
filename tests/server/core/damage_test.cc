// SPDX-License-Identifier: Apache-2.0
#include "server/core/damage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/wire/error_info.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A server of partitions 0, 2 and 3, and the partitions that it was told about.
class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    damage_.Listen([this](int partition) { told_.push_back(partition); });
  }

  void Note(const std::string& file) {
    damage_.Note(file, absl::DataLossError("/store/" + file + " is damaged"));
  }

  Damage damage_{"/store", {0, 2, 3}};
  std::vector<int> told_;
};

TEST_F(DamageTest, ADamagedFileAffectsOnlyItsPartition) {
  EXPECT_EQ(damage_.Check(2), absl::OkStatus());
  Note("part-00002/nodes/node/feature.npy");
  const absl::Status status = damage_.Check(2);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("part-00002/nodes/node/feature.npy is damaged"));
  EXPECT_EQ(ErrorInfoOf(status).partition, 2);
  EXPECT_TRUE(ErrorInfoOf(status).moved);
  EXPECT_FALSE(damage_.IsDamaged(0));
  EXPECT_FALSE(damage_.IsDamaged(3));
  EXPECT_FALSE(damage_.AreAllDamaged());
  EXPECT_THAT(told_, ElementsAre(2));
}

TEST_F(DamageTest, ADamagedSharedFileAffectsAllPartitions) {
  Note("part-00003/nodes/node/label.npy");
  Note("splits/node/train/id.npy");
  EXPECT_TRUE(damage_.AreAllDamaged());
  EXPECT_THAT(told_, ElementsAre(3, 0, 2));
  EXPECT_THAT(damage_.damaged().at(3), HasSubstr("label.npy"));  // the first
}

TEST_F(DamageTest, FilesOfPartitionsThatAreNotServedDoNoHarm) {
  Note("part-00001/nodes/node/feature.npy");
  EXPECT_THAT(damage_.damaged(), IsEmpty());
  EXPECT_THAT(told_, IsEmpty());
}

}  // namespace
}  // namespace millrace
