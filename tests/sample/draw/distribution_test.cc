// SPDX-License-Identifier: Apache-2.0
// The distribution of the draws: single and joint inclusion, and independence.
//
// False alarms: the job seeds are fixed, so a test that passes always passes.
// For a perfect generator and a random seed, each test of a table fails with
// probability kAlpha; there are fewer than 400 tables, so some test fails with
// probability below 4e-4. The expected count of every cell is at least 20.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/store.h"
#include "common/sample/draw/draw.h"
#include "gmock/gmock.h"
#include "tests/support/chi_square.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using testing::ChiSquareP;
using testing::ChiSquareTail;
using testing::kAlpha;

constexpr int64_t kHighDegree = 100003;
constexpr int kTwins = 500;  // nodes of equal degree
constexpr int kTwoTwinsDegree = 17;
constexpr uint64_t kHub = 3;
constexpr uint64_t kFirstTwin = 4;
constexpr int kSlots = 64;  // cells that a long list is divided into

// Picks of one frontier node, as slots of its list.
using Slots = std::vector<int64_t>;

// The in-lists: node i < 3 has kLowDegrees[i] neighbours, the hub has
// kHighDegree, and then come the twins. The edges of a node are consecutive, so
// a slot is an edge_id minus that of the first edge.
constexpr int64_t kLowDegrees[] = {3, 5, 17};

int64_t Degree(uint64_t node) {
  if (node == kHub) return kHighDegree;
  return node < kHub ? kLowDegrees[node] : kTwoTwinsDegree;
}

testing::TestRelation StarRelation(const std::string& name) {
  testing::TestRelation relation;
  relation.src = "leaf";
  relation.name = name;
  relation.dst = "center";
  relation.out = false;
  for (uint64_t v = 0; v < kFirstTwin + kTwins; ++v) {
    for (int64_t i = 0; i < Degree(v); ++i) {
      relation.edges.emplace_back(i, static_cast<int64_t>(v));
    }
  }
  return relation;
}

class DistributionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    testing::TestGraph graph;
    graph.types = {{.name = "leaf", .count = kHighDegree},
                   {.name = "center", .count = kFirstTwin + kTwins}};
    graph.relations = {StarRelation("to"), StarRelation("by")};
    store_ = testing::TestStore(graph).Open().release();
    first_edge_.push_back(0);
    for (uint64_t v = 0; v < kFirstTwin + kTwins; ++v) {
      first_edge_.push_back(first_edge_.back() + Degree(v));
    }
  }
  static void TearDownTestSuite() {
    delete store_;
    store_ = nullptr;
    first_edge_.clear();
  }

  // The slots that each (node, tree) picks.
  static std::vector<Slots> Draw(DrawContext context, int fanout,
                                 const std::vector<uint64_t>& nodes,
                                 const std::vector<uint32_t>& trees,
                                 int relation = 0) {
    context.edge_ids = true;
    Picks picks;
    const absl::Status status = DrawNeighbors(
        *store_, 0, context, {relation, fanout, nodes, trees}, picks);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<Slots> slots(picks.counts.size());
    auto edge = picks.edge_ids.begin();
    for (size_t i = 0; i < slots.size(); ++i) {
      for (uint32_t j = 0; j < picks.counts[i]; ++j) {
        slots[i].push_back(*edge++ - first_edge_[nodes[i]]);
      }
    }
    return slots;
  }

  // `count` draws from one list, each in its own tree.
  static std::vector<Slots> DrawTrees(const DrawContext& context, int fanout,
                                      uint64_t node, uint32_t count,
                                      int relation = 0) {
    std::vector<uint32_t> trees(count);
    for (uint32_t i = 0; i < count; ++i) trees[i] = i;
    return Draw(context, fanout, std::vector<uint64_t>(count, node), trees,
                relation);
  }

  static Store* store_;  // owned by the suite
  static std::vector<int64_t> first_edge_;
};
Store* DistributionTest::store_ = nullptr;
std::vector<int64_t> DistributionTest::first_edge_;

// Divides the slots of a list into at most kSlots cells.
struct Cells {
  explicit Cells(int64_t degree)
      : degree(degree), count(std::min<int64_t>(degree, kSlots)) {}
  int64_t Of(int64_t slot) const { return slot * count / degree; }
  double Width(int64_t cell) const {
    const auto first = [this](int64_t c) {
      return (c * degree + count - 1) / count;
    };
    return static_cast<double>(first(cell + 1) - first(cell));
  }

  int64_t degree;
  int64_t count;
};

// Chooses one pick of each draw at random: these are uniform over the slots if
// and only if all slots are included equally often.
double SingleInclusionP(const std::vector<Slots>& draws, int64_t degree) {
  std::mt19937_64 choose(1);
  const Cells cells(degree);
  std::vector<int64_t> counts(cells.count);
  std::vector<double> weights(cells.count);
  for (int64_t c = 0; c < cells.count; ++c) weights[c] = cells.Width(c);
  for (const Slots& slots : draws) {
    ++counts[cells.Of(slots[choose() % slots.size()])];
  }
  return ChiSquareP(counts, weights);
}

// The same for two picks of each draw, ordered by slot: tests the joint
// inclusion of all pairs. `replace`: the two may be the same slot.
double JointInclusionP(const std::vector<Slots>& draws, int64_t degree,
                       bool replace) {
  std::mt19937_64 choose(2);
  Cells cells(degree);
  cells.count = std::min<int64_t>(cells.count, 17);
  std::map<std::pair<int64_t, int64_t>, int64_t> table;
  for (Slots slots : draws) {
    const size_t first = choose() % slots.size();
    std::swap(slots[first], slots.back());
    const size_t second = choose() % (slots.size() - 1);
    const auto [low, high] =
        std::minmax({cells.Of(slots.back()), cells.Of(slots[second])});
    ++table[{low, high}];
  }
  std::vector<int64_t> counts;
  std::vector<double> weights;
  for (int64_t a = 0; a < cells.count; ++a) {
    for (int64_t b = a; b < cells.count; ++b) {
      const double wide = cells.Width(a);
      const double pairs = a != b    ? 2 * wide * cells.Width(b)
                           : replace ? wide * wide
                                     : wide * (wide - 1);
      if (pairs == 0) {
        EXPECT_EQ(table.count({a, b}), 0);
        continue;
      }
      counts.push_back(table[{a, b}]);
      weights.push_back(pairs);
    }
  }
  return ChiSquareP(counts, weights);
}

// Tests whether two repeated draws of one pick each are independent.
double IndependenceP(const std::vector<Slots>& left,
                     const std::vector<Slots>& right) {
  std::vector<int64_t> counts(kTwoTwinsDegree * kTwoTwinsDegree);
  for (size_t i = 0; i < left.size(); ++i) {
    ++counts[left[i].at(0) * kTwoTwinsDegree + right[i].at(0)];
  }
  return ChiSquareP(counts);
}

TEST(ChiSquareTest, TailsAreThoseOfTheTables) {
  // Abramowitz and Stegun, table 26.8.
  EXPECT_NEAR(ChiSquareTail(10.8276, 1), 0.001, 1e-7);
  EXPECT_NEAR(ChiSquareTail(18.3070, 10), 0.05, 1e-6);
  EXPECT_NEAR(ChiSquareTail(2.15586, 10), 0.995, 1e-6);
  EXPECT_NEAR(ChiSquareTail(149.449, 100), 0.001, 1e-7);
  EXPECT_NEAR(ChiSquareTail(27.6310, 2), 1e-6, 1e-10);
}

TEST(ChiSquareTest, AlarmsAtUnevenCounts) {
  EXPECT_GT(ChiSquareP({1010, 990, 1000}), 0.5);
  EXPECT_LT(ChiSquareP({1200, 900, 900}), kAlpha);
}

TEST_F(DistributionTest, SlotsOfShortListsAreIncludedEqually) {
  for (uint64_t node = 0; node < kHub; ++node) {
    for (int fanout = 1; fanout <= 15; ++fanout) {
      for (const bool replace : {false, true}) {
        if (!replace && fanout >= Degree(node)) continue;
        const auto draws = DrawTrees({.replace = replace}, fanout, node, 40000);
        EXPECT_GT(SingleInclusionP(draws, Degree(node)), kAlpha)
            << "degree " << Degree(node) << ", fanout " << fanout
            << ", replace " << replace;
      }
    }
  }
}

TEST_F(DistributionTest, PairsOfShortListsAreIncludedEqually) {
  for (uint64_t node = 0; node < kHub; ++node) {
    for (int fanout = 2; fanout <= 15; ++fanout) {
      for (const bool replace : {false, true}) {
        if (!replace && fanout >= Degree(node)) continue;
        const auto draws = DrawTrees({.replace = replace}, fanout, node, 40000);
        EXPECT_GT(JointInclusionP(draws, Degree(node), replace), kAlpha)
            << "degree " << Degree(node) << ", fanout " << fanout
            << ", replace " << replace;
      }
    }
  }
}

TEST_F(DistributionTest, SlotsAndPairsOfLongListsAreIncludedEqually) {
  for (int fanout = 1; fanout <= 15; ++fanout) {
    for (const bool replace : {false, true}) {
      const auto draws = DrawTrees({.replace = replace}, fanout, kHub, 40000);
      EXPECT_GT(SingleInclusionP(draws, kHighDegree), kAlpha)
          << "fanout " << fanout << ", replace " << replace;
      if (fanout < 2) continue;
      EXPECT_GT(JointInclusionP(draws, kHighDegree, replace), kAlpha)
          << "fanout " << fanout << ", replace " << replace;
    }
  }
}

// The low bits of a long list's slots matter too.
TEST_F(DistributionTest, NeighboringSlotsOfLongListsAreIncludedEqually) {
  std::vector<int64_t> counts(kSlots);
  for (const Slots& slots : DrawTrees({}, 15, kHub, 40000)) {
    // Floyd's picks from a list this long are practically independent.
    for (const int64_t slot : slots) {
      if (slot < kHighDegree / kSlots * kSlots) ++counts[slot % kSlots];
    }
  }
  EXPECT_GT(ChiSquareP(counts), kAlpha);
}

// Tests the whole distribution: every subset of the size of the fanout.
TEST_F(DistributionTest, SubsetsOfShortListsAreEquallyLikely) {
  const std::vector<std::pair<uint64_t, int>> cases = {
      {0, 1}, {0, 2}, {1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {2, 3}, {2, 15}};
  for (const auto& [node, fanout] : cases) {
    std::map<Slots, int64_t> subsets;
    for (Slots slots : DrawTrees({.job_seed = 5}, fanout, node, 40000)) {
      EXPECT_TRUE(std::is_sorted(slots.begin(), slots.end()));
      ++subsets[slots];
    }
    std::vector<int64_t> counts;
    for (const auto& [subset, count] : subsets) counts.push_back(count);
    double all = 1;  // Degree(node) choose fanout
    for (int i = 0; i < fanout; ++i) all = all * (Degree(node) - i) / (i + 1);
    EXPECT_EQ(static_cast<double>(counts.size()), std::round(all));
    EXPECT_GT(ChiSquareP(counts), kAlpha)
        << "degree " << Degree(node) << ", fanout " << fanout;
  }
}

// With replacement, the picks of a draw are independent of each other, in
// order.
TEST_F(DistributionTest, PicksWithReplacementAreIndependent) {
  const auto draws = DrawTrees({.replace = true}, 15, 2, 40000);
  for (int first = 0; first < 15; ++first) {
    for (int second = first + 1; second < 15; ++second) {
      std::vector<int64_t> counts(kTwoTwinsDegree * kTwoTwinsDegree);
      for (const Slots& slots : draws) {
        ++counts[slots[first] * kTwoTwinsDegree + slots[second]];
      }
      EXPECT_GT(ChiSquareP(counts), kAlpha) << first << " and " << second;
    }
  }
}

// Changing any part of a draw's key must give an independent draw.
TEST_F(DistributionTest, DrawsOfDifferentNamesAreIndependent) {
  const DrawContext context{.job_seed = 9, .epoch = 3, .batch = 4, .hop = 1};
  const auto base = DrawTrees(context, 1, 2, 40000);
  const std::map<std::string, std::function<void(DrawContext&)>> changes = {
      {"seed", [](DrawContext& c) { c.job_seed += 1; }},
      {"seed's high word", [](DrawContext& c) { c.job_seed += 1ULL << 32; }},
      {"epoch", [](DrawContext& c) { c.epoch += 1; }},
      {"batch", [](DrawContext& c) { c.batch += 1; }},
      {"epoch and batch", [](DrawContext& c) { std::swap(c.epoch, c.batch); }},
      {"hop", [](DrawContext& c) { c.hop += 1; }},
  };
  for (const auto& [name, change] : changes) {
    DrawContext other = context;
    change(other);
    EXPECT_GT(IndependenceP(base, DrawTrees(other, 1, 2, 40000)), kAlpha)
        << name;
  }
  EXPECT_GT(IndependenceP(base, DrawTrees(context, 1, 2, 40000, 1)), kAlpha)
      << "relation";
}

TEST_F(DistributionTest, DrawsOfBatchesAreUniformAndIndependent) {
  std::vector<Slots> draws;
  for (uint32_t batch = 0; batch < 20000; ++batch) {
    draws.push_back(Draw({.batch = batch}, 1, {2}, {}).at(0));
  }
  EXPECT_GT(SingleInclusionP(draws, kTwoTwinsDegree), kAlpha);
  const std::vector<Slots> next(draws.begin() + 1, draws.end());
  draws.pop_back();
  EXPECT_GT(IndependenceP(draws, next), kAlpha);
}

TEST_F(DistributionTest, DrawsOfTreesAreIndependent) {
  auto draws = DrawTrees({}, 1, 2, 40001);
  const std::vector<Slots> next(draws.begin() + 1, draws.end());
  draws.pop_back();
  EXPECT_GT(IndependenceP(draws, next), kAlpha);
}

TEST_F(DistributionTest, DrawsOfNodesAreUniformAndIndependent) {
  std::vector<Slots> left, right;
  std::vector<uint64_t> nodes(kTwins);
  for (int i = 0; i < kTwins; ++i) nodes[i] = kFirstTwin + i;
  for (uint32_t epoch = 0; epoch < 80; ++epoch) {
    const auto draws = Draw({.epoch = epoch}, 1, nodes, {});
    left.insert(left.end(), draws.begin(), draws.end() - 1);
    right.insert(right.end(), draws.begin() + 1, draws.end());
  }
  EXPECT_GT(SingleInclusionP(left, kTwoTwinsDegree), kAlpha);
  EXPECT_GT(IndependenceP(left, right), kAlpha);
}

}  // namespace
}  // namespace millrace
