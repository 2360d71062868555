// SPDX-License-Identifier: Apache-2.0
// The distributions of weighted draws and LABOR, compared with exact ones.
//
// False alarms: the job seeds are fixed, so a test that passes always passes.
// For a perfect generator and a random seed, each table fails with probability
// kAlpha; there are fewer than 250, so some table fails with probability below
// 2.5e-4. The expected count of every cell is at least 20.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "common/sample/draw/draw.h"
#include "gmock/gmock.h"
#include "tests/support/chi_square.h"
#include "tests/support/distribution.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using Slots = std::vector<int64_t>;
using testing::ChiSquareP;
using testing::DistributionP;
using testing::kAlpha;
using testing::TestGraph;

constexpr uint32_t kDraws = 40000;

// Lists by node: one with a zero weight; one longer than the fanout from which
// draws use trees of sums; two with the same neighbours in different orders.
constexpr uint64_t kShort = 0, kLong = 1, kTwin = 2, kOtherTwin = 3;
// The neighbours of the last list, one of which occurs twice.
constexpr uint64_t kCopies = 4;
const std::vector<int64_t> kCopiesList = {40, 41, 40, 42};
constexpr int64_t kHalf = 25;  // kLong has as many 1s as 3s
constexpr int64_t kTwinDegree = 9;
const std::vector<float> kWeights = {1, 2, 3, 4, 0, 6};

TestGraph Lists() {
  testing::TestRelation to = {.src = "leaf", .name = "to", .dst = "center"};
  const auto add = [&](int64_t leaf, uint64_t center, float weight) {
    to.edges.emplace_back(leaf, static_cast<int64_t>(center));
    to.weight.push_back(weight);
  };
  for (size_t i = 0; i < kWeights.size(); ++i) add(i, kShort, kWeights[i]);
  for (int64_t i = 0; i < 2 * kHalf; ++i) add(i, kLong, i % 2 == 0 ? 1 : 3);
  for (int64_t i = 0; i < kTwinDegree; ++i) add(20 + i, kTwin, 1);
  for (int64_t i = kTwinDegree; i-- > 0;) add(20 + i, kOtherTwin, 1);
  for (const int64_t leaf : kCopiesList) add(leaf, kCopies, 1);
  testing::TestRelation by = to;
  by.name = "by";
  return {.types = {{.name = "leaf", .count = 2 * kHalf},
                    {.name = "center", .count = 5}},
          .relations = {to, by},
          .splits = {}};
}

class DrawDistributionTest : public ::testing::Test {
 protected:
  // The neighbours that each of `count` trees picks from one list.
  std::vector<Slots> DrawTrees(const DrawContext& context, int fanout,
                               uint64_t node, uint32_t count = kDraws,
                               int relation = 0) {
    std::vector<uint32_t> trees(count);
    for (uint32_t i = 0; i < count; ++i) trees[i] = i;
    const std::vector<uint64_t> nodes(count, node);
    Picks picks;
    const absl::Status status = DrawNeighbors(
        *store_, 0, context, {relation, fanout, nodes, trees}, picks);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<Slots> draws;
    auto at = picks.neighbors.begin();
    for (const uint32_t picked : picks.counts) {
      draws.emplace_back(at, at + picked);
      at += picked;
    }
    return draws;
  }

  const std::shared_ptr<const Store> store_ =
      testing::TestStore(Lists()).Open();
};

// Adds the probabilities of the sets of `k` successive draws, by enumerating
// all orders.
void AddSuccessiveDraws(std::vector<double> weights, int k, double p,
                        Slots picked, std::map<Slots, double>& distribution) {
  double rest = 0;
  for (const double weight : weights) rest += weight;
  if (k == 0 || rest == 0) {
    std::sort(picked.begin(), picked.end());
    distribution[picked] += p;
    return;
  }
  for (size_t slot = 0; slot < weights.size(); ++slot) {
    if (weights[slot] == 0) continue;
    std::vector<double> others = weights;
    others[slot] = 0;
    Slots more = picked;
    more.push_back(static_cast<int64_t>(slot));
    AddSuccessiveDraws(others, k - 1, p * weights[slot] / rest, more,
                       distribution);
  }
}

std::map<Slots, int64_t> CountSets(const std::vector<Slots>& draws) {
  std::map<Slots, int64_t> counts;
  for (const Slots& slots : draws) ++counts[slots];
  return counts;
}

// Tests the inclusion of each set of one or two slots against a distribution.
void ExpectInclusions(const std::vector<Slots>& draws,
                      const std::map<Slots, double>& distribution,
                      int64_t degree) {
  const auto includes = [](const Slots& slots, int64_t a, int64_t b) {
    return std::count(slots.begin(), slots.end(), a) > 0 &&
           std::count(slots.begin(), slots.end(), b) > 0;
  };
  for (int64_t a = 0; a < degree; ++a) {
    for (int64_t b = a; b < degree; ++b) {
      double p = 0;
      for (const auto& [slots, probability] : distribution) {
        if (includes(slots, a, b)) p += probability;
      }
      int64_t count = 0;
      for (const Slots& slots : draws) count += includes(slots, a, b);
      if (p < 1e-12 || p > 1 - 1e-12) {
        EXPECT_EQ(count, p < 0.5 ? 0 : static_cast<int64_t>(draws.size()));
        continue;
      }
      EXPECT_GT(ChiSquareP({count, static_cast<int64_t>(draws.size()) - count},
                           {p, 1 - p}),
                kAlpha)
          << "slots " << a << " and " << b;
    }
  }
}

TEST_F(DrawDistributionTest, WeightedDrawsAreSuccessiveDraws) {
  const std::vector<double> weights(kWeights.begin(), kWeights.end());
  for (int k = 1; k <= 4; ++k) {
    std::map<Slots, double> distribution;
    AddSuccessiveDraws(weights, k, 1, {}, distribution);
    const auto draws = DrawTrees({.rule = DrawRule::kWeighted}, k, kShort);
    EXPECT_GT(DistributionP(CountSets(draws), distribution, kDraws), kAlpha)
        << "fanout " << k;
    ExpectInclusions(draws, distribution, static_cast<int64_t>(weights.size()));
  }
}

TEST_F(DrawDistributionTest, ZeroWeightsAreNeverPicked) {
  for (const int k : {5, 6, 7}) {
    for (const Slots& slots :
         DrawTrees({.rule = DrawRule::kWeighted}, k, kShort, 100)) {
      EXPECT_EQ(slots, (Slots{0, 1, 2, 3, 5}));
    }
  }
}

// All but one of 50 slots: successive draws leave the slot whose exponential
// clock of rate w rings last. For a slot of weight w the probability of that is
// w * integral over u in (0, 1) of u^(w - 1) * prod over others (1 - u^w_i).
TEST_F(DrawDistributionTest, LongWeightedDrawsAreSuccessiveDraws) {
  constexpr int kSteps = 200000;
  double light = 0, heavy = 0;  // midpoint rule
  for (int i = 0; i < kSteps; ++i) {
    const double u = (i + 0.5) / kSteps;
    const double a = 1 - u, b = 1 - u * u * u;
    const double common = std::pow(a, kHalf - 1) * std::pow(b, kHalf - 1);
    light += common * b / kSteps;
    heavy += 3 * u * u * common * a / kSteps;
  }
  ASSERT_NEAR(kHalf * (light + heavy), 1, 1e-9);
  constexpr int64_t kDegree = 2 * kHalf;
  std::vector<int64_t> left(kDegree);
  std::vector<double> distribution(kDegree);
  for (int64_t i = 0; i < kDegree; ++i) {
    distribution[i] = i % 2 == 0 ? light : heavy;
  }
  for (const Slots& slots :
       DrawTrees({.rule = DrawRule::kWeighted}, kDegree - 1, kLong, 20000)) {
    ASSERT_EQ(slots.size(), static_cast<size_t>(kDegree - 1));
    int64_t sum = kDegree * (kDegree - 1) / 2;
    for (const int64_t slot : slots) sum -= slot;
    ++left.at(sum);
  }
  int64_t light_left = 0;
  for (int64_t i = 0; i < kDegree; i += 2) light_left += left[i];
  EXPECT_GT(ChiSquareP({light_left, 20000 - light_left}, {light, heavy}),
            kAlpha);
  EXPECT_GT(ChiSquareP(left, distribution), kAlpha);
}

TEST_F(DrawDistributionTest, WeightedPicksWithReplacementAreIndependent) {
  const auto draws =
      DrawTrees({.rule = DrawRule::kWeighted, .replace = true}, 3, kShort);
  for (size_t first = 0; first < 3; ++first) {
    for (size_t second = first + 1; second < 3; ++second) {
      std::map<Slots, int64_t> counts;
      std::map<Slots, double> distribution;
      for (const Slots& slots : draws) {
        ++counts[{slots.at(first), slots.at(second)}];
      }
      for (int64_t a = 0; a < 6; ++a) {
        for (int64_t b = 0; b < 6; ++b) {
          const double p = kWeights[a] * kWeights[b] / 256;
          if (p > 0) distribution[{a, b}] = p;
        }
      }
      EXPECT_GT(DistributionP(counts, distribution, kDraws), kAlpha)
          << first << " " << second;
    }
  }
}

// All subsets of size k are equally likely, so one slot is included with
// probability k / d, two with k (k - 1) / (d (d - 1)), and so on.
TEST_F(DrawDistributionTest, LaborIncludesEverySubsetEquallyOften) {
  for (const int k : {1, 3, 8}) {
    std::map<Slots, double> distribution;
    AddSuccessiveDraws(std::vector<double>(kTwinDegree, 1), k, 1, {},
                       distribution);
    auto draws = DrawTrees({.rule = DrawRule::kLabor}, k, kTwin);
    for (Slots& slots : draws) {
      for (int64_t& slot : slots) slot -= 20;
    }
    EXPECT_GT(DistributionP(CountSets(draws), distribution, kDraws), kAlpha)
        << "fanout " << k;
    ExpectInclusions(draws, distribution, kTwinDegree);
    const double pair = 1.0 * k * (k - 1) / (kTwinDegree * (kTwinDegree - 1));
    double p = 0;  // the same probability by summation
    for (const auto& [slots, probability] : distribution) {
      if (std::count(slots.begin(), slots.end(), 0) > 0 &&
          std::count(slots.begin(), slots.end(), 5) > 0) {
        p += probability;
      }
    }
    EXPECT_NEAR(p, pair, 1e-12);
  }
}

TEST_F(DrawDistributionTest, LaborOfOneBatchPicksTheSameNeighbors) {
  for (uint32_t batch = 0; batch < 200; ++batch) {
    const std::vector<uint64_t> nodes = {kTwin, kOtherTwin};
    Picks picks;
    ASSERT_TRUE(DrawNeighbors(*store_, 0,
                              {.batch = batch, .rule = DrawRule::kLabor},
                              {0, 4, nodes}, picks)
                    .ok());
    ASSERT_EQ(picks.neighbors.size(), 8u);
    const auto middle = picks.neighbors.begin() + 4;
    EXPECT_EQ(std::set(picks.neighbors.begin(), middle),
              std::set(middle, picks.neighbors.end()));
  }
}

// A neighbour has one number however often it occurs in a list: neighbours, not
// entries, are equally likely to come first, and their copies come with them in
// list order. Slots 0 and 2 are copies.
TEST_F(DrawDistributionTest, LaborTakesCopiesOfANeighborInListOrder) {
  const auto first = static_cast<int64_t>(kWeights.size()) + 2 * kHalf +
                     2 * kTwinDegree;  // the edge id of the list's first
  std::vector<uint32_t> trees(kDraws);
  std::iota(trees.begin(), trees.end(), 0);
  const std::vector<uint64_t> nodes(kDraws, kCopies);
  const std::map<Slots, double> distributions[] = {
      {{{0}, 1. / 3}, {{1}, 1. / 3}, {{3}, 1. / 3}},
      {{{0, 2}, 1. / 3}, {{0, 1}, 1. / 6}, {{0, 3}, 1. / 6}, {{1, 3}, 1. / 3}}};
  for (int k = 1; k <= 2; ++k) {
    Picks picks;
    ASSERT_TRUE(DrawNeighbors(*store_, 0,
                              {.rule = DrawRule::kLabor, .edge_ids = true},
                              {0, k, nodes, trees}, picks)
                    .ok());
    std::map<Slots, int64_t> counts;
    for (size_t i = 0; i < picks.edge_ids.size(); i += k) {
      Slots slots;
      for (int j = 0; j < k; ++j)
        slots.push_back(picks.edge_ids[i + j] - first);
      ++counts[slots];
    }
    for (const auto& [slots, count] : counts) {
      ASSERT_TRUE(distributions[k - 1].contains(slots)) << slots.front();
    }
    EXPECT_GT(DistributionP(counts, distributions[k - 1], kDraws), kAlpha)
        << "fanout " << k;
  }
}

TEST_F(DrawDistributionTest, LaborOfDifferentNamesIsIndependent) {
  const DrawContext context{.job_seed = 9,
                            .epoch = 3,
                            .batch = 4,
                            .hop = 1,
                            .rule = DrawRule::kLabor};
  const auto base = DrawTrees(context, 1, kTwin);
  const auto independence = [&](const DrawContext& other, int relation) {
    const auto draws = DrawTrees(other, 1, kOtherTwin, kDraws, relation);
    std::vector<int64_t> counts(kTwinDegree * kTwinDegree);
    for (size_t i = 0; i < draws.size(); ++i) {
      ++counts[(base[i].at(0) - 20) * kTwinDegree + draws[i].at(0) - 20];
    }
    return ChiSquareP(counts);
  };
  const std::map<std::string, std::function<void(DrawContext&)>> changes = {
      {"seed", [](DrawContext& c) { c.job_seed += 1; }},
      {"epoch", [](DrawContext& c) { c.epoch += 1; }},
      {"batch", [](DrawContext& c) { c.batch += 1; }},
      {"hop", [](DrawContext& c) { c.hop += 1; }}};
  for (const auto& [name, change] : changes) {
    DrawContext other = context;
    change(other);
    EXPECT_GT(independence(other, 0), kAlpha) << name;
  }
  EXPECT_GT(independence(context, 1), kAlpha) << "relation";
}

}  // namespace
}  // namespace millrace
