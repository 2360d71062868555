// SPDX-License-Identifier: Apache-2.0
// Compares draw by draw with the words of docs/determinism.md, sections 2 and
// 3, reimplemented without shortcuts.
#include "common/sample/draw/pick_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "common/sample/draw/draw.h"
#include "common/sample/draw/word_stream.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Slots = std::vector<int64_t>;

constexpr DrawDomain kDomain = {
    .job_seed = 0x123456789ABCDEF, .epoch = 2, .batch = 3, .hop = 1};
constexpr uint64_t kNode = 0x500000007;
constexpr uint32_t kTree = 9;
constexpr int64_t kBegin = 13;  // where the list begins in its files

// The key of retry `r` of kDomain.
PhiloxKey KeyOf(uint32_t r) {
  const PhiloxWords words =
      Philox({static_cast<uint32_t>(kDomain.job_seed),
              static_cast<uint32_t>(kDomain.job_seed >> 32)},
             {2, 3, 1 + 256 * r, 1 * 65536});
  return {words[0], words[1]};
}

uint64_t Word(uint32_t r, uint64_t node, uint32_t i) {
  return Philox(KeyOf(r),
                {static_cast<uint32_t>(node), static_cast<uint32_t>(node >> 32),
                 kTree, i / 4})[i % 4];
}

uint64_t Wide(uint64_t node, uint32_t i, uint64_t n) {
  using Product = unsigned __int128;
  const Product all = Product{1} << 64;
  for (uint32_t r = 0;; ++r) {
    const uint64_t word =
        Word(r, node, 2 * i) + (Word(r, node, 2 * i + 1) << 32);
    const Product m = Product{word} * n;
    if (m % all >= (all - n) % n) return static_cast<uint64_t>(m / all);
  }
}

uint64_t Bounded(uint64_t node, uint32_t i, uint64_t n) {
  const uint64_t all = uint64_t{1} << 32;
  for (uint32_t r = 0;; ++r) {
    const uint64_t m = Word(r, node, i) * n;
    if (m % all >= (all - n) % n) return m / all;
  }
}

// Weighted picks from a list whose slots have the integer weights `weights`.
Slots Weighted(std::vector<uint64_t> weights, int k, bool replace,
               uint64_t node = kNode) {
  Slots picks;
  for (int i = 0; i < k; ++i) {
    uint64_t rest = 0;
    for (const uint64_t weight : weights) rest += weight;
    if (rest == 0) break;
    uint64_t x = Wide(node, i, rest);
    int64_t slot = 0;
    for (; x >= weights[slot]; ++slot) x -= weights[slot];
    picks.push_back(kBegin + slot);
    if (!replace) weights[slot] = 0;
  }
  if (!replace) std::sort(picks.begin(), picks.end());
  return picks;
}

// The weight_sum column, with other lists around this one.
std::vector<uint64_t> SumsOf(const std::vector<uint64_t>& weights) {
  std::vector<uint64_t> sums(kBegin, 4711);
  uint64_t sum = 0;
  for (const uint64_t weight : weights) sums.push_back(sum += weight);
  sums.push_back(3);
  return sums;
}

Slots Picked(const std::vector<uint64_t>& weights, int k, bool replace,
             uint64_t node = kNode) {
  const std::vector<uint64_t> sums = SumsOf(weights);
  WordStream words(kDomain, kDomain.Key(), node, kTree);
  Slots slots = {-1};  // a slot of an earlier node
  PickWeighted(words, {kBegin, static_cast<int64_t>(weights.size())}, sums, k,
               replace, slots);
  EXPECT_EQ(slots.front(), -1);
  slots.erase(slots.begin());
  return slots;
}

std::vector<uint64_t> SomeWeights(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint64_t> weights(count);
  for (uint64_t& weight : weights) {
    // The weights span all magnitudes, and a quarter of them are 0.
    weight = random() % 4 == 0 ? 0 : random() >> random() % 32;
  }
  return weights;
}

// Tries fanouts below and above the one from which draws use a tree of sums.
TEST(PickWeightedTest, MatchesTheSpecification) {
  for (const size_t degree : {2u, 3u, 49u, 64u, 65u, 300u}) {
    const std::vector<uint64_t> weights =
        SomeWeights(degree, static_cast<uint32_t>(degree));
    for (const int k : {1, 2, 7, 47, 48, 49, 60, 61, 299}) {
      for (uint64_t node = 0; node < 5; ++node) {
        EXPECT_EQ(Picked(weights, k, true, node),
                  Weighted(weights, k, true, node))
            << "degree " << degree << ", " << k << " with replacement";
        EXPECT_EQ(Picked(weights, k, false, node),
                  Weighted(weights, k, false, node))
            << "degree " << degree << ", " << k << " without replacement";
      }
    }
  }
}

// With these lengths up to half of the words are rejected.
TEST(WordStreamTest, BoundedIsDrawnWithoutBias) {
  for (const uint64_t n :
       {uint64_t{3} << 30, (uint64_t{1} << 31) + 1, (uint64_t{1} << 32) - 1}) {
    for (uint64_t node = 0; node < 100; ++node) {
      WordStream words(kDomain, kDomain.Key(), node, kTree);
      for (uint32_t i = 0; i < 8; ++i) {
        ASSERT_EQ(words.Bounded(i, n), Bounded(node, i, n)) << n;
      }
    }
  }
}

// The fanouts on both sides of the limit share all draws but the last.
TEST(PickWeightedTest, OneMorePickKeepsTheOthers) {
  const std::vector<uint64_t> weights = SomeWeights(200, 1);
  const Slots few = Picked(weights, 48, false);
  const Slots many = Picked(weights, 49, false);
  EXPECT_EQ(many.size(), few.size() + 1);
  EXPECT_TRUE(std::includes(many.begin(), many.end(), few.begin(), few.end()));
}

// With sums as large as these a quarter of the words are rejected, so words of
// retries are needed.
TEST(PickWeightedTest, HugeSumsAreDrawnWithoutBias) {
  const std::vector<uint64_t> weights(3, uint64_t{1} << 61);
  for (uint64_t node = 0; node < 300; ++node) {
    ASSERT_EQ(Picked(weights, 12, true, node),
              Weighted(weights, 12, true, node));
    ASSERT_EQ(Picked(weights, 2, false, node),
              Weighted(weights, 2, false, node));
  }
}

TEST(PickWeightedTest, SkipsZeros) {
  EXPECT_THAT(Picked({0, 0}, 1, false), IsEmpty());
  EXPECT_THAT(Picked({0, 0}, 1, true), IsEmpty());
  EXPECT_THAT(Picked({}, 3, true), IsEmpty());
  EXPECT_THAT(Picked({}, 3, false), IsEmpty());
  EXPECT_THAT(Picked({0, 5, 0, 1, 0}, 3, false),
              ElementsAre(kBegin + 1, kBegin + 3));
  EXPECT_THAT(Picked({0, 5, 0, 1, 0}, 9, false),
              ElementsAre(kBegin + 1, kBegin + 3));
  EXPECT_THAT(Picked({0, 7, 0}, 2, true), ElementsAre(kBegin + 1, kBegin + 1));
  // The slots that can be picked run out before the fanout is reached.
  std::vector<uint64_t> sparse(100, 0);
  sparse[0] = sparse[40] = sparse[99] = 3;
  for (const int k : {5, 48, 49, 99}) {
    EXPECT_THAT(Picked(sparse, k, false),
                ElementsAre(kBegin, kBegin + 40, kBegin + 99))
        << k;
  }
}

TEST(PickWeightedTest, AllIncludesZeros) {
  for (const bool replace : {false, true}) {
    EXPECT_THAT(Picked({0, 5, 0}, kAllNeighbors, replace),
                ElementsAre(kBegin, kBegin + 1, kBegin + 2));
    EXPECT_THAT(Picked({0, 0}, kAllNeighbors, replace),
                ElementsAre(kBegin, kBegin + 1));
  }
}

// A damaged file may hold descending sums.
TEST(PickWeightedTest, DamagedSumsGiveSlotsOfTheList) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint64_t> sums(kBegin + 70);
    for (uint64_t& sum : sums) sum = random() >> random() % 64;
    for (const int k : {3, 60}) {
      for (const bool replace : {false, true}) {
        WordStream words(kDomain, kDomain.Key(), kNode, kTree);
        Slots slots;
        PickWeighted(words, {kBegin, 70}, sums, k, replace, slots);
        for (const int64_t slot : slots) {
          ASSERT_GE(slot, kBegin);
          ASSERT_LT(slot, kBegin + 70);
        }
      }
    }
  }
}

Slots Uniform(int64_t degree, int k, bool replace, uint64_t node) {
  Slots picks;
  std::set<int64_t> picked;
  for (int i = 0; i < k; ++i) {
    if (replace) {
      picks.push_back(kBegin + static_cast<int64_t>(Bounded(node, i, degree)));
      continue;
    }
    const int64_t j = degree - k + i;
    const auto x = static_cast<int64_t>(Bounded(node, i, j + 1));
    picked.insert(picked.contains(x) ? j : x);
  }
  for (const int64_t slot : picked) picks.push_back(kBegin + slot);
  return picks;
}

TEST(PickUniformTest, MatchesTheSpecification) {
  for (const int64_t degree : {3, 50, 64, 1000, 100000}) {
    for (const int k : {1, 2, 47, 48, 49, 63, 200}) {
      for (uint64_t node = 0; node < 5; ++node) {
        for (const bool replace : {false, true}) {
          if (!replace && k >= degree) continue;
          WordStream words(kDomain, kDomain.Key(), node, kTree);
          Slots slots;
          PickUniform(words, {kBegin, degree}, k, replace, slots);
          EXPECT_EQ(slots, Uniform(degree, k, replace, node))
              << "degree " << degree << ", fanout " << k << ", replace "
              << replace;
        }
      }
    }
  }
}

TEST(PickLastTest, TakesTheEndOfTheList) {
  const auto last = [](int64_t degree, int32_t fanout) {
    Slots slots;
    PickLast({kBegin, degree}, fanout, slots);
    return slots;
  };
  EXPECT_THAT(last(5, 2), ElementsAre(kBegin + 3, kBegin + 4));
  EXPECT_THAT(last(2, 2), ElementsAre(kBegin, kBegin + 1));
  EXPECT_THAT(last(2, 9), ElementsAre(kBegin, kBegin + 1));
  EXPECT_THAT(last(2, kAllNeighbors), ElementsAre(kBegin, kBegin + 1));
  EXPECT_THAT(last(0, 3), IsEmpty());
}

// All slots ordered by (number of the neighbour, slot), cut to the first k.
template <typename Id>
Slots Labor(PhiloxKey key, uint32_t tree, const std::vector<Id>& list,
            size_t k) {
  std::vector<std::pair<uint64_t, int64_t>> ranked;
  for (size_t slot = 0; slot < list.size(); ++slot) {
    const PhiloxWords words = Philox(
        key, {static_cast<uint32_t>(list[slot]),
              static_cast<uint32_t>(uint64_t{list[slot]} >> 32), tree, 0});
    ranked.emplace_back(words[0] + (uint64_t{words[1]} << 32),
                        kBegin + static_cast<int64_t>(slot));
  }
  std::sort(ranked.begin(), ranked.end());
  ranked.resize(std::min(ranked.size(), k));
  Slots picks;
  for (const auto& [number, slot] : ranked) picks.push_back(slot);
  std::sort(picks.begin(), picks.end());
  return picks;
}

template <typename Id>
Slots PickedLabor(PhiloxKey key, uint32_t tree, const std::vector<Id>& list,
                  int32_t k) {
  std::vector<Id> originals(kBegin, 5);  // other lists around this one
  originals.insert(originals.end(), list.begin(), list.end());
  originals.push_back(6);
  std::vector<NumberedNode> scratch = {{0, 0}};
  Slots slots;
  PickLabor<Id>(key, tree, {kBegin, static_cast<int64_t>(list.size())},
                originals, k, scratch, slots);
  return slots;
}

template <typename Id>
class PickLaborTest : public ::testing::Test {};
using IdTypes = ::testing::Types<uint32_t, uint64_t>;
TYPED_TEST_SUITE(PickLaborTest, IdTypes);

TYPED_TEST(PickLaborTest, PicksTheSmallestNumbers) {
  std::mt19937_64 random(1);
  for (const size_t degree : {1u, 2u, 7u, 8u, 9u, 100u, 3000u}) {
    for (const int32_t k : {1, 2, 8, 50, 99, 2999}) {
      for (uint32_t tree = 0; tree < 4; ++tree) {
        std::vector<TypeParam> list(degree);
        for (TypeParam& id : list) id = static_cast<TypeParam>(random());
        const PhiloxKey key = {static_cast<uint32_t>(random()), tree};
        EXPECT_EQ(PickedLabor(key, tree, list, k), Labor(key, tree, list, k))
            << "degree " << degree << ", fanout " << k;
      }
    }
  }
}

// All neighbours share one number, however unlikely it is: few numbers or none
// are below the limit that is tried first.
TYPED_TEST(PickLaborTest, EqualNeighborsAreOrderedBySlot) {
  for (TypeParam node = 0; node < 200; ++node) {
    const std::vector<TypeParam> list(500, node);
    EXPECT_THAT(PickedLabor({1, 2}, 0, list, 3),
                ElementsAre(kBegin, kBegin + 1, kBegin + 2));
  }
}

// Two of the three smallest numbers are below the limit that is tried first.
TYPED_TEST(PickLaborTest, NumbersBelowTheFirstLimitAreTakenOnce) {
  constexpr size_t kDegree = 1000;
  constexpr int32_t kFanout = 3;
  const uint64_t limit = RankLimit(kFanout, kDegree);
  std::vector<TypeParam> list;
  size_t below = 0;
  for (TypeParam node = 0; list.size() < kDegree; ++node) {
    const PhiloxWords words =
        Philox({1, 2}, {static_cast<uint32_t>(node), 0, 0, 0});
    const bool small = (words[0] + (uint64_t{words[1]} << 32)) <= limit;
    if (small && below == 2) continue;
    below += small ? 1 : 0;
    list.push_back(node);
  }
  ASSERT_EQ(below, 2u);
  EXPECT_EQ(PickedLabor({1, 2}, 0, list, kFanout),
            Labor({1, 2}, 0, list, kFanout));
}

TYPED_TEST(PickLaborTest, PicksAllIfFewerThanTheFanout) {
  const std::vector<TypeParam> list = {4, 4, 9};
  for (const int32_t k : {3, 4, kAllNeighbors}) {
    EXPECT_THAT(PickedLabor({1, 2}, 0, list, k),
                ElementsAre(kBegin, kBegin + 1, kBegin + 2));
  }
  EXPECT_THAT(PickedLabor({1, 2}, 0, std::vector<TypeParam>(), 2), IsEmpty());
}

TEST(RankLimitTest, ReachesAllOfShortLists) {
  constexpr uint64_t kAll = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(RankLimit(10, 11), kAll);
  EXPECT_EQ(RankLimit(1, 7), kAll);  // 1 + 3 + 3
  EXPECT_LT(RankLimit(1, 8), kAll);
  EXPECT_EQ(RankLimit(1, 14), uint64_t{1} << 63);
}

}  // namespace
}  // namespace millrace
