// SPDX-License-Identifier: Apache-2.0
#include "common/base/philox_many.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace millrace {
namespace {

constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
constexpr PhiloxKey kKey = {0x01234567, 0xFEDCBA98};

template <typename Id>
std::vector<NumberedNode> OneByOne(PhiloxKey key, const std::vector<Id>& nodes,
                                   uint32_t c2, uint64_t limit, int64_t first) {
  std::vector<NumberedNode> out;
  for (const Id node : nodes) {
    const PhiloxWords words =
        Philox(key, {static_cast<uint32_t>(node),
                     static_cast<uint32_t>(uint64_t{node} >> 32), c2, 0});
    const uint64_t number = words[0] + (uint64_t{words[1]} << 32);
    if (number <= limit) out.push_back({number, first});
    ++first;
  }
  return out;
}

template <typename Id>
std::vector<Id> RandomIds(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Id> ids(count);
  for (Id& id : ids) id = static_cast<Id>(random());
  return ids;
}

template <typename Id>
class PhiloxManyTest : public ::testing::Test {};
using IdTypes = ::testing::Types<uint32_t, uint64_t>;
TYPED_TEST_SUITE(PhiloxManyTest, IdTypes);

// All sizes around those of a vector, and limits that keep none, few, some
// and all.
TYPED_TEST(PhiloxManyTest, EqualsPhiloxOneByOne) {
  for (size_t size = 0; size <= 40; ++size) {
    const auto nodes = RandomIds<TypeParam>(size, size);
    for (const uint64_t limit :
         {uint64_t{0}, uint64_t{1} << 59, uint64_t{1} << 63, kAll - 1, kAll}) {
      std::vector<NumberedNode> out;
      PhiloxAtMost(kKey, nodes, 77, limit, 1000, out);
      EXPECT_EQ(out, OneByOne(kKey, nodes, 77, limit, 1000))
          << size << " nodes, limit " << limit;
    }
  }
}

TYPED_TEST(PhiloxManyTest, TakesTheLimitItselfAndNothingAbove) {
  const auto nodes = RandomIds<TypeParam>(24, 3);
  const auto all = OneByOne(kKey, nodes, 0, kAll, 0);
  for (const NumberedNode& node : all) {
    for (const uint64_t limit : {node.number - 1, node.number}) {
      std::vector<NumberedNode> out;
      PhiloxAtMost(kKey, nodes, 0, limit, 0, out);
      EXPECT_EQ(out, OneByOne(kKey, nodes, 0, limit, 0));
      EXPECT_EQ(std::find(out.begin(), out.end(), node) != out.end(),
                limit == node.number);
    }
  }
}

TYPED_TEST(PhiloxManyTest, EveryWordOfTheKeyAndTheCounterCounts) {
  const auto nodes = RandomIds<TypeParam>(19, 4);
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    const PhiloxKey key = {static_cast<uint32_t>(random()),
                           static_cast<uint32_t>(random())};
    const auto c2 = static_cast<uint32_t>(random());
    std::vector<NumberedNode> out;
    PhiloxAtMost(key, nodes, c2, kAll, -7, out);
    ASSERT_EQ(out, OneByOne(key, nodes, c2, kAll, -7));
  }
}

TYPED_TEST(PhiloxManyTest, AppendsToWhatIsThere) {
  const auto nodes = RandomIds<TypeParam>(9, 6);
  std::vector<NumberedNode> out = {{1, 2}};
  PhiloxAtMost(kKey, nodes, 0, kAll, 0, out);
  ASSERT_EQ(out.size(), 10u);
  EXPECT_EQ(out.front(), (NumberedNode{1, 2}));
}

// Both widths number a node alike.
TEST(PhiloxAtMostTest, WidthOfIdsDoesNotMatter) {
  const auto narrow = RandomIds<uint32_t>(37, 7);
  const std::vector<uint64_t> wide(narrow.begin(), narrow.end());
  std::vector<NumberedNode> a, b;
  PhiloxAtMost(kKey, narrow, 5, kAll, 0, a);
  PhiloxAtMost(kKey, wide, 5, kAll, 0, b);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace millrace
