// SPDX-License-Identifier: Apache-2.0
// The distributions of walks and PPR, compared with exact ones.
//
// False alarms: the job seeds are fixed, so a test that passes always passes.
// For a perfect generator and a random seed, each table or z-value fails with
// probability kAlpha; there are fewer than 200, so one of them fails with
// probability below 2e-4. The expected count of every cell is at least 20.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/distribution.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::DistributionP;
using testing::ExplicitJob;
using testing::Int64s;
using testing::kAlpha;
using testing::OpenGraph;
using testing::Sample;
using testing::TestGraph;

constexpr double kZ = 4.9;  // P(|normal| > kZ) < kAlpha
constexpr uint32_t kWalkDraws = 40000;

// Five nodes with edges (source, destination): the list of 2 has a loop, that
// of 0 has an edge twice, that of 4 is empty, and that of 3 has weight 0.
constexpr int64_t kGraphNodes = 5;
constexpr int64_t kEnded = -1;

TestGraph WalkGraph() {
  TestGraph graph;
  graph.types = {{.count = kGraphNodes}};
  graph.relations = {{.edges = {{1, 0},
                                {2, 0},
                                {2, 0},
                                {4, 0},
                                {0, 1},
                                {3, 1},
                                {4, 1},
                                {0, 2},
                                {1, 2},
                                {2, 2},
                                {0, 3}},
                      .weight = {1, 3, 2, 2, 1, 1, 0.5F, 4, 0, 1, 0}}};
  return graph;
}

// Probabilities of a step from `node`; kEnded if there is none.
std::map<int64_t, double> StepFrom(int64_t node, bool weighted) {
  const TestGraph graph = WalkGraph();
  std::map<int64_t, double> distribution;
  double sum = 0;
  for (size_t e = 0; e < graph.relations[0].edges.size(); ++e) {
    const auto [src, dst] = graph.relations[0].edges[e];
    const double weight = weighted ? graph.relations[0].weight[e] : 1;
    if (dst != node || weight == 0) continue;
    distribution[src] += weight;
    sum += weight;
  }
  for (auto& [to, p] : distribution) p /= sum;
  if (distribution.empty()) distribution[kEnded] = 1;
  return distribution;
}

// Calls `visit(path, p)` for all paths of `steps` steps after `path`; `restart`
// is the probability of ending before each step but the first.
void ForEachPath(
    std::vector<int64_t> path, double p, int steps, bool weighted,
    double restart,
    const std::function<void(std::vector<int64_t>, double)>& visit) {
  if (steps == 0) return visit(path, p);
  const auto go = [&](int64_t to, double chance) {
    if (chance == 0) return;
    std::vector<int64_t> longer = path;
    longer.push_back(to);
    ForEachPath(longer, p * chance, steps - 1, weighted, restart, visit);
  };
  if (path.back() == kEnded) return go(kEnded, 1);
  const double on = path.size() > 1 ? 1 - restart : 1;
  if (on < 1) go(kEnded, 1 - on);
  for (const auto& [to, chance] : StepFrom(path.back(), weighted)) {
    go(to, on * chance);
  }
}

JobSpec WalkJob(SampleMethod method, bool weighted, int walks, int length) {
  JobSpec spec = ExplicitJob({});
  spec.method = method;
  spec.weighted = weighted;
  spec.walks = walks;
  spec.walk_length = length;
  return spec;
}

// The walks of a batch, by original ids.
std::vector<std::vector<int64_t>> PathsOf(const absl::StatusOr<Batch>& batch) {
  std::vector<std::vector<int64_t>> paths;
  EXPECT_TRUE(batch.ok()) << batch.status();
  if (!batch.ok()) return paths;
  const auto original = Int64s(batch->nodes[0].original_id);
  const auto local = batch->walks.As<int32_t>();
  const auto columns = static_cast<size_t>(batch->walks.shape()[1]);
  for (size_t at = 0; at < local.size(); at += columns) {
    std::vector<int64_t>& path = paths.emplace_back();
    for (size_t i = at; i < at + columns; ++i) {
      path.push_back(local[i] < 0 ? kEnded : original.at(local[i]));
    }
  }
  return paths;
}

// Tests one, two and three steps, and each step given the steps before it.
TEST(WalkDistributionTest, PathsFollowTheExactDistribution) {
  const auto source = OpenGraph(WalkGraph(), 0);
  for (const bool weighted : {false, true}) {
    for (const int64_t seed : {0, 1, 2}) {
      for (int steps = 1; steps <= 3; ++steps) {
        std::map<std::vector<int64_t>, double> distribution;
        ForEachPath({seed}, 1, steps, weighted, 0,
                    [&](auto path, double p) { distribution[path] += p; });
        std::map<std::vector<int64_t>, int64_t> counts;
        const auto batch = Sample(
            *source, WalkJob(SampleMethod::kWalk, weighted, kWalkDraws, steps),
            {{seed}, {}});
        for (const auto& path : PathsOf(batch)) ++counts[path];
        EXPECT_GT(DistributionP(counts, distribution, kWalkDraws), kAlpha)
            << "from " << seed << ", " << steps << " steps, weighted "
            << weighted;
      }
    }
  }
}

TEST(WalkDistributionTest, WalkersSeedsAndBatchesAreIndependent) {
  const auto source = OpenGraph(WalkGraph(), 0);
  const JobSpec spec = WalkJob(SampleMethod::kWalk, true, kWalkDraws, 2);
  const auto first = PathsOf(Sample(*source, spec, {{0, 0}, {}}));
  const auto next = PathsOf(Sample(*source, spec, {{0, 0}, {}}, 1));
  ASSERT_EQ(first.size(), size_t{2} * kWalkDraws);
  std::map<std::vector<int64_t>, double> distribution;
  for (const auto& [a, p] : StepFrom(0, true)) {
    for (const auto& [b, q] : StepFrom(0, true)) distribution[{a, b}] = p * q;
  }
  const auto independence = [&](auto left, auto right) {
    std::map<std::vector<int64_t>, int64_t> counts;
    for (size_t i = 0; i < kWalkDraws; ++i) ++counts[{left(i), right(i)}];
    return DistributionP(counts, distribution, kWalkDraws);
  };
  const auto one = [&](size_t i) { return first[i][1]; };
  EXPECT_GT(independence(one, [&](size_t i) { return first[i + 1][1]; }),
            kAlpha)
      << "walkers";
  EXPECT_GT(
      independence(one, [&](size_t i) { return first[i + kWalkDraws][1]; }),
      kAlpha)
      << "seeds";
  EXPECT_GT(independence(one, [&](size_t i) { return next[i][1]; }), kAlpha)
      << "batches";
}

// Paths of node2vec walks: weight 1/p for going back, 1 for moving to a
// neighbour of the previous node, and 1/q for moving elsewhere.
void ForEachBiasedPath(
    const std::vector<int64_t>& path, double chance, int steps, double p,
    double q, const std::function<void(std::vector<int64_t>, double)>& visit) {
  if (steps == 0) return visit(path, chance);
  std::map<int64_t, double> distribution = StepFrom(path.back(), false);
  if (path.size() > 1 && path.back() != kEnded &&
      !distribution.contains(kEnded)) {
    const int64_t before = path[path.size() - 2];
    const std::map<int64_t, double> nearby = StepFrom(before, false);
    double sum = 0;
    for (auto& [to, weight] : distribution) {
      weight *= to == before ? 1 / p : nearby.contains(to) ? 1 : 1 / q;
      sum += weight;
    }
    for (auto& [to, weight] : distribution) weight /= sum;
  }
  for (const auto& [to, weight] : distribution) {
    std::vector<int64_t> longer = path;
    longer.push_back(to);
    ForEachBiasedPath(longer, chance * weight, steps - 1, p, q, visit);
  }
}

TEST(WalkDistributionTest, BiasedPathsFollowTheExactDistribution) {
  const auto source = OpenGraph(WalkGraph(), 0);
  struct Bias {
    double p, q;
  };
  for (const auto& [p, q] :
       {Bias{0.25, 4}, Bias{4, 0.25}, Bias{3, 1}, Bias{1, 0.7}}) {
    for (const int64_t seed : {0, 1, 2}) {
      for (int steps = 1; steps <= 4; ++steps) {
        std::map<std::vector<int64_t>, double> distribution;
        ForEachBiasedPath({seed}, 1, steps, p, q, [&](auto path, double c) {
          distribution[path] += c;
        });
        JobSpec spec = WalkJob(SampleMethod::kWalk, false, kWalkDraws, steps);
        spec.walk_p = p;
        spec.walk_q = q;
        std::map<std::vector<int64_t>, int64_t> counts;
        for (const auto& path : PathsOf(Sample(*source, spec, {{seed}, {}}))) {
          ++counts[path];
        }
        EXPECT_GT(DistributionP(counts, distribution, kWalkDraws), kAlpha)
            << "from " << seed << ", " << steps << " steps, p " << p << ", q "
            << q;
      }
    }
  }
}

// Walkers number their words by themselves, whatever node they are at.
TEST(WalkDistributionTest, BiasedWalkersAreIndependent) {
  const auto source = OpenGraph(WalkGraph(), 0);
  JobSpec spec = WalkJob(SampleMethod::kWalk, false, kWalkDraws, 2);
  spec.walk_p = 0.5;
  const auto first = PathsOf(Sample(*source, spec, {{0, 0}, {}}));
  const auto next = PathsOf(Sample(*source, spec, {{0, 0}, {}}, 1));
  std::map<std::vector<int64_t>, double> distribution;
  for (const auto& [a, p] : StepFrom(0, false)) {
    for (const auto& [b, q] : StepFrom(0, false)) distribution[{a, b}] = p * q;
  }
  const auto independence = [&](const auto& other, size_t ahead) {
    std::map<std::vector<int64_t>, int64_t> counts;
    for (size_t i = 0; i < kWalkDraws; ++i) {
      ++counts[{first[i][1], other[i + ahead][1]}];
    }
    return DistributionP(counts, distribution, kWalkDraws);
  };
  EXPECT_GT(independence(first, 1), kAlpha) << "walkers";
  EXPECT_GT(independence(first, kWalkDraws), kAlpha) << "seeds";
  EXPECT_GT(independence(next, 0), kAlpha) << "batches";
}

// Visits of one walk to each node: means and variances over all paths.
struct Moments {
  std::map<int64_t, double> mean, square;
};
Moments VisitsFrom(int64_t start, int steps, bool weighted, double restart) {
  Moments moments;
  ForEachPath({start}, 1, steps, weighted, restart, [&](auto path, double p) {
    for (int64_t node = 0; node < kGraphNodes; ++node) {
      const auto visits =
          static_cast<double>(std::count(path.begin() + 1, path.end(), node));
      if (node == start) continue;
      moments.mean[node] += p * visits;
      moments.square[node] += p * visits * visits;
    }
  });
  return moments;
}

TEST(PprDistributionTest, VisitsFollowTheExactDistribution) {
  constexpr int kWalks = 40000;
  constexpr int kLength = 4;
  const auto source = OpenGraph(WalkGraph(), 0);
  for (const bool weighted : {false, true}) {
    for (const double restart : {0.0, 0.3, 1.0}) {
      JobSpec spec = WalkJob(SampleMethod::kPpr, weighted, kWalks, kLength);
      spec.restart = restart;
      spec.fanouts = {-1, -1};  // frontier nodes of two hops
      const auto batch = Sample(*source, spec, {{0}, {}});
      ASSERT_TRUE(batch.ok()) << batch.status();
      const auto edges = testing::EdgesOf(*batch, source->manifest().schema, 0);
      std::map<int64_t, std::map<int64_t, double>> visits;
      for (size_t e = 0; e < edges.size(); ++e) {
        visits[edges[e].owner.original][edges[e].neighbor.original] =
            static_cast<double>(batch->edges[0].visits.IntegerAt(e));
      }
      EXPECT_GT(visits.size(), 1u);
      for (const auto& [start, counted] : visits) {
        const Moments distribution =
            VisitsFrom(start, kLength, weighted, restart);
        for (const auto& [node, mean] : distribution.mean) {
          const auto found = counted.find(node);
          const double count = found == counted.end() ? 0 : found->second;
          const double variance = distribution.square.at(node) - mean * mean;
          const double sigma = std::sqrt(kWalks * variance);
          EXPECT_LE(std::abs(count - kWalks * mean), kZ * sigma)
              << "from " << start << " to " << node << ", weighted " << weighted
              << ", restart " << restart;
        }
      }
    }
  }
}

}  // namespace
}  // namespace millrace
