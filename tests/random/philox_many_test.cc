// SPDX-License-Identifier: Apache-2.0
#include "common/random/philox_many.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "common/random/philox_vector.h"

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

// Tries all sizes around those of a group, a mask and a block, and limits that
// select none, few, some and all.
TYPED_TEST(PhiloxManyTest, EqualsPhiloxOneByOne) {
  std::vector<size_t> sizes(140);
  std::iota(sizes.begin(), sizes.end(), 0);
  for (size_t size = 500; size < 540; ++size) sizes.push_back(size);
  sizes.push_back(3000);
  for (const size_t size : sizes) {
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

TYPED_TEST(PhiloxManyTest, IncludesTheLimitAndNothingAbove) {
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

TYPED_TEST(PhiloxManyTest, AppendsToTheVector) {
  const auto nodes = RandomIds<TypeParam>(9, 6);
  std::vector<NumberedNode> out = {{1, 2}};
  PhiloxAtMost(kKey, nodes, 0, kAll, 0, out);
  ASSERT_EQ(out.size(), 10u);
  EXPECT_EQ(out.front(), (NumberedNode{1, 2}));
}

// A node has the same number in both widths.
TEST(PhiloxAtMostTest, WidthOfIdsDoesNotMatter) {
  const auto narrow = RandomIds<uint32_t>(37, 7);
  const std::vector<uint64_t> wide(narrow.begin(), narrow.end());
  std::vector<NumberedNode> a, b;
  PhiloxAtMost(kKey, narrow, 5, kAll, 0, a);
  PhiloxAtMost(kKey, wide, 5, kAll, 0, b);
  EXPECT_EQ(a, b);
}

// A vector unit in plain code, as wide as any. Its multiplication reads the low
// halves; the high halves are garbage.
template <size_t kWidth>
struct PlainUnit {
  static constexpr size_t kLanes = kWidth;
  using Words = std::array<uint64_t, kLanes>;

  template <typename F>
  static Words Each(F f) {
    Words words;
    for (size_t i = 0; i < kLanes; ++i) words[i] = f(i);
    return words;
  }
  static Words Set(uint32_t word) {
    return Each([=](size_t i) { return word | uint64_t{i + 9} << 40; });
  }
  static Words Load(const uint32_t* nodes) {
    return Each([=](size_t i) { return nodes[i] | uint64_t{i + 7} << 50; });
  }
  static void Store(const Words& numbers, uint64_t* out) {
    std::copy(numbers.begin(), numbers.end(), out);
  }
  static Words Xor(const Words& a, const Words& b) {
    return Each([&](size_t i) { return a[i] ^ b[i]; });
  }
  static Words Times(const Words& a, uint32_t m) {
    return Each([&](size_t i) { return (a[i] & 0xFFFFFFFF) * m; });
  }
  static Words High(const Words& a) {
    return Each([&](size_t i) { return a[i] >> 32; });
  }
  static Words Join(const Words& low, const Words& high) {
    return Each(
        [&](size_t i) { return (low[i] & 0xFFFFFFFF) | high[i] << 32; });
  }
  static unsigned AtMost(const Words& numbers, uint64_t limit) {
    unsigned mask = 0;
    for (size_t i = 0; i < kLanes; ++i) mask |= (numbers[i] <= limit) << i;
    return mask;
  }
};

// Compares `number(task, nodes, count, block)` with Philox on single nodes.
template <typename Number>
void ExpectNumbers(Number number) {
  constexpr uint64_t kLimit = kAll / 3;
  for (size_t size = 1; size <= PhiloxBlock::kSize; ++size) {
    const auto nodes = RandomIds<uint32_t>(size, size);
    PhiloxBlock block;
    number(PhiloxTask{{kKey[0], kKey[1]}, 77, kLimit}, nodes.data(), size,
           block);
    const auto expected = OneByOne(kKey, nodes, 77, kAll, 0);
    for (size_t i = 0; i < (size + 63) / 64 * 64; ++i) {
      const bool taken = (block.at_most[i / 64] >> i % 64 & 1) != 0;
      ASSERT_EQ(taken, i < size && expected[i].number <= kLimit);
      if (taken) {
        ASSERT_EQ(block.numbers[i], expected[i].number);
      }
    }
  }
}

template <typename Unit>
class PhiloxVectorTest : public ::testing::Test {};
using Units = ::testing::Types<PlainUnit<4>, PlainUnit<8>, PlainUnit<16>>;
TYPED_TEST_SUITE(PhiloxVectorTest, Units);

TYPED_TEST(PhiloxVectorTest, EqualsPhiloxWhateverTheLanes) {
  ExpectNumbers([](const PhiloxTask& task, const uint32_t* nodes, size_t count,
                   PhiloxBlock& block) {
    PhiloxVector<TypeParam>(task).Number(nodes, count, block);
  });
}

// Tests every implementation that this CPU can run, not only the one that
// PhiloxAtMost() chooses.
#if defined(__x86_64__)
TEST(PhiloxUnitTest, Avx2EqualsPhilox) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  ExpectNumbers(PhiloxAvx2);
}

TEST(PhiloxUnitTest, Avx512EqualsPhilox) {
  if (!__builtin_cpu_supports("avx512f")) {
    GTEST_SKIP() << "this CPU has no AVX-512F";
  }
  ExpectNumbers(PhiloxAvx512);
}
#endif

}  // namespace
}  // namespace millrace
