// SPDX-License-Identifier: Apache-2.0
#include "client/train/run/training_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/file/npy.h"
#include "tests/support/test_directory.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;

class TrainingOrderTest : public DirectoryTest {
 protected:
  // The order in a file of `rows` rows (0: one dimension) for three seeds.
  absl::StatusOr<TrainingOrder> Order(std::vector<int64_t> ids, int64_t rows,
                                      uint32_t epochs) const {
    const auto size = static_cast<int64_t>(ids.size());
    std::vector<int64_t> shape = {size};
    if (rows > 0) shape = {rows, size / rows};
    std::filesystem::remove(path());
    EXPECT_TRUE(
        WriteNpy(path(), Array::Adopt(std::move(ids), std::move(shape))).ok());
    return ReadTrainingOrder(path(), seeds_, epochs);
  }
  std::string path() const { return (directory_ / "order.npy").string(); }

  // Expects that an order is refused in these words.
  void ExpectRefusal(const absl::StatusOr<TrainingOrder>& order,
                     const std::string& message) const {
    EXPECT_TRUE(absl::IsInvalidArgument(order.status())) << order.status();
    EXPECT_EQ(order.status().message(), "order " + path() + message);
  }

  ExplicitSeeds seeds_ = {.ids = {40, 10, 30}, .times = {4, 1, 3}};
};

constexpr char kOnce[] = "\neach row must hold every seed of the job once";

TEST_F(TrainingOrderTest, OneListIsForAllEpochs) {
  const auto order = Order({10, 30, 40}, 0, 7);
  ASSERT_TRUE(order.ok()) << order.status();
  ASSERT_EQ(order->epochs.size(), 1u);
  EXPECT_THAT(order->epochs[0].ids, ElementsAre(10, 30, 40));
  EXPECT_THAT(order->epochs[0].times, ElementsAre(1, 3, 4));
}

TEST_F(TrainingOrderTest, EachEpochMayHaveItsList) {
  const std::vector<int64_t> lists = {10, 30, 40, 40, 30, 10};
  const auto order = Order(lists, 2, 2);
  ASSERT_TRUE(order.ok()) << order.status();
  ASSERT_EQ(order->epochs.size(), 2u);
  EXPECT_THAT(order->epochs[0].ids, ElementsAre(10, 30, 40));
  EXPECT_THAT(order->epochs[1].ids, ElementsAre(40, 30, 10));
  EXPECT_THAT(order->epochs[1].times, ElementsAre(4, 3, 1));
  // More lists than epochs are fine, fewer are not.
  EXPECT_TRUE(Order(lists, 2, 1).ok());
  ExpectRefusal(Order(lists, 2, 3),
                ": has 2 rows, but there are 3 epochs\n"
                "give a row for each epoch, or one dimension for all");
}

TEST_F(TrainingOrderTest, OtherFilesAreNoOrders) {
  absl::Status status = ReadTrainingOrder(path(), seeds_, 1).status();
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  for (const Array& array : {Array::Adopt(std::vector<float>{40, 10, 30}),
                             Array::Adopt(std::vector<int64_t>{40, 10, 30},
                                          std::vector<int64_t>{1, 1, 3})}) {
    std::filesystem::remove(path());
    ASSERT_TRUE(WriteNpy(path(), array).ok());
    status = ReadTrainingOrder(path(), seeds_, 1).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    const std::string start = "order: " + path();
    EXPECT_EQ(status.message().substr(0, start.size()), start);
    EXPECT_EQ(GetFieldError(status)->field, "order");
  }
}

TEST_F(TrainingOrderTest, NamesTheFirstSeedThatDoesNotFit) {
  ExpectRefusal(Order({10, 20, 40}, 0, 1),
                std::string(": 20 is not one of the job's seeds") + kOnce);
  ExpectRefusal(Order({10, 40, 10}, 0, 1),
                std::string(": seed 10 occurs twice") + kOnce);
  ExpectRefusal(Order({40}, 0, 1), std::string(": seed 10 is missing") + kOnce);
  ExpectRefusal(Order({10, 30, 40, 10, 30, 30}, 2, 2),
                std::string(": row 1: seed 30 occurs twice") + kOnce);
  seeds_.ids = {40, 10, 40};
  ExpectRefusal(Order({10, 30, 40}, 0, 1),
                ": seed 40 occurs twice among the job's seeds\n"
                "give every seed once, or no order");
}

TEST_F(TrainingOrderTest, AChecksumCoversTheEpochsThatItIsFor) {
  const std::vector<int64_t> one = {10, 30, 40}, other = {40, 30, 10};
  const auto lists = [&](const auto&... list) {
    std::vector<int64_t> all;
    (all.insert(all.end(), list.begin(), list.end()), ...);
    return all;
  };
  const TrainingOrder alike = Order(one, 0, 3).value();
  const TrainingOrder twice = Order(lists(one, one), 2, 2).value();
  const TrainingOrder mixed = Order(lists(one, other), 2, 2).value();
  EXPECT_EQ(alike.ChecksumOf(0), mixed.ChecksumOf(0));
  EXPECT_EQ(alike.ChecksumOf(1), mixed.ChecksumOf(1));
  EXPECT_NE(alike.ChecksumOf(1), alike.ChecksumOf(0));
  EXPECT_EQ(alike.ChecksumOf(2), twice.ChecksumOf(2));
  EXPECT_NE(alike.ChecksumOf(2), mixed.ChecksumOf(2));
  EXPECT_NE(alike.ChecksumOf(2), alike.ChecksumOf(1));
  EXPECT_NE(alike.ChecksumOf(3), alike.ChecksumOf(2));
  // There are no more lists.
  EXPECT_EQ(mixed.ChecksumOf(3), mixed.ChecksumOf(2));
}

}  // namespace
}  // namespace millrace::testing
