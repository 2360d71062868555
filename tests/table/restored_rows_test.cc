// SPDX-License-Identifier: Apache-2.0
#include "common/table/restored_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/base/array.h"
#include "common/table/combined_rows.h"
#include "common/table/npy_rows.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class RestoredRowsTest : public testing::DirectoryTest {
 protected:
  // Row i of `values` contains positions[i] * 10 and positions[i] * 10 + 1.
  RowShare Share(const std::vector<int64_t>& positions, int64_t offset = 0) {
    std::vector<int64_t> places = positions;
    std::vector<int32_t> values;
    for (int64_t& place : places) {
      values.push_back(static_cast<int32_t>(place * 10));
      values.push_back(static_cast<int32_t>(place * 10 + 1));
      place += offset;
    }
    const auto rows = static_cast<int64_t>(positions.size());
    kept_.push_back(Array::Adopt(std::move(values)));
    const Array table =
        Array::Borrow(DType::kInt32, {rows, 2}, kept_.back().data(), nullptr);
    return {ArrayRows("ids", Array::Adopt(std::move(places))),
            ArrayRows("values", table), offset};
  }

  absl::StatusOr<std::vector<int64_t>> Restore(std::vector<RowShare> shares,
                                               int64_t rows, uint64_t memory) {
    const auto source = RestoreRows("table", "edge", std::move(shares), rows,
                                    {directory_, memory});
    if (!source.ok()) return source.status();
    const auto reader = (*source)->Open();
    if (!reader.ok()) return reader.status();
    std::vector<int64_t> values, block(2 * 7);
    while (true) {
      const auto count = (*reader)->ReadIntegers(7, block.data());
      if (!count.ok()) return count.status();
      if (*count == 0) return values;
      values.insert(values.end(), block.begin(), block.begin() + 2 * *count);
    }
  }

  std::string Refusal(std::vector<RowShare> shares, int64_t rows,
                      uint64_t memory = 1 << 20) {
    const auto values = Restore(std::move(shares), rows, memory);
    EXPECT_FALSE(values.ok());
    return std::string(values.status().message());
  }

  std::vector<Array> kept_;
};

TEST_F(RestoredRowsTest, PutsSharesInOrderWithAnyMemory) {
  constexpr int64_t kRows = 1000;
  std::vector<int64_t> order(kRows);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  const std::vector<int64_t> first(order.begin(), order.begin() + 300);
  const std::vector<int64_t> second(order.begin() + 300, order.end());
  for (const uint64_t memory : {0, 200, 3000, 1 << 20}) {
    SCOPED_TRACE(memory);
    const auto values =
        Restore({Share(first, 5), Share(second), Share({})}, kRows, memory);
    ASSERT_TRUE(values.ok()) << values.status();
    ASSERT_EQ(values->size(), 2 * kRows);
    for (int64_t i = 0; i < kRows; ++i) {
      EXPECT_EQ((*values)[2 * i], i * 10);
      EXPECT_EQ((*values)[2 * i + 1], i * 10 + 1);
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(RestoredRowsTest, RefusesRowsThatDoNotCoverTheTable) {
  EXPECT_THAT(Refusal({Share({0, 2})}, 3), HasSubstr("2 rows for 3 edges"));
  EXPECT_THAT(Refusal({Share({0, 2}), Share({1, 0})}, 3),
              HasSubstr("4 rows for 3 edges"));
  EXPECT_THAT(Refusal({Share({0, 3, 1})}, 3),
              HasSubstr("ids: row 1: edge 3 is out of range: ids are 0 to 2"));
  EXPECT_THAT(Refusal({Share({0, -1, 1}, 4)}, 3),
              HasSubstr("edge 3 is out of range: ids are 4 to 6"));
  EXPECT_THAT(Refusal({Share({0, 2}), Share({0})}, 3),
              HasSubstr("edge 0 occurs twice"));
  EXPECT_THAT(Refusal({Share({0, 2}), Share({0})}, 3, 0),
              HasSubstr("occur twice"));
}

TEST_F(RestoredRowsTest, RefusesSharesOfOtherShapes) {
  RowShare share = Share({0, 1});
  share.positions = ArrayRows("ids", Array::Adopt(std::vector<int64_t>{0}));
  EXPECT_THAT(Refusal({share}, 2), HasSubstr("values: 2 rows, but ids has 1"));
  share = Share({1});
  share.values = ArrayRows("narrow", Array::Adopt(std::vector<int32_t>{4}));
  EXPECT_THAT(Refusal({Share({0}), share}, 2),
              HasSubstr("narrow: 1 numbers per row, but values has 2"));
}

TEST_F(RestoredRowsTest, CombinesTables) {
  const RowShare one = Share({3, 1}), two = Share({2});
  const auto both = ConcatenateRows("both", {one.values, two.values});
  ASSERT_TRUE(both.ok());
  EXPECT_EQ((*both)->rows(), 3);
  EXPECT_EQ((*both)->Where(2), "values: row 0");
  const auto joined = JoinColumns("joined", {one.positions, one.values});
  ASSERT_TRUE(joined.ok());
  std::vector<float> row(6);
  ASSERT_EQ(*(*(*joined)->Open())->ReadFloats(2, row.data()), 2);
  EXPECT_THAT(row, ::testing::ElementsAre(3, 30, 31, 1, 10, 11));
  EXPECT_FALSE(JoinColumns("no", {one.positions, two.values}).ok());
  EXPECT_FALSE(ConcatenateRows("no", {one.positions, two.values}).ok());
}

// Weights are checked before they become floats.
TEST_F(RestoredRowsTest, KeepsDoublesOfOneColumn) {
  const std::vector<double> numbers = {1e-300, 0.1, 1e300};
  const auto share = [](std::vector<int64_t> places,
                        std::vector<double> values) {
    return RowShare{ArrayRows("ids", Array::Adopt(std::move(places))),
                    ArrayRows("values", Array::Adopt(std::move(values)))};
  };
  const auto source = RestoreRows(
      "table", "edge",
      {share({2, 0}, {numbers[2], numbers[0]}), share({1}, {numbers[1]})}, 3,
      {directory_, 1 << 20});
  ASSERT_TRUE(source.ok()) << source.status();
  const auto both = ConcatenateRows("both", {*source, *source});
  ASSERT_TRUE(both.ok()) << both.status();
  const auto reader = (*both)->Open();
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<double> values(6);
  EXPECT_EQ(*(*reader)->ReadDoubles(6, values.data()), 6);
  std::vector<double> twice = numbers;
  twice.insert(twice.end(), numbers.begin(), numbers.end());
  EXPECT_EQ(values, twice);
}

}  // namespace
}  // namespace millrace
