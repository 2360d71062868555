// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/resolve_seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::HasSubstr;

// A job of pairs, and two pairs with all that may come with them.
ResolvedJob PairJob() {
  ResolvedJob job;
  job.spec.seed_kind = SeedKind::kEdge;
  job.seed_relation = 0;
  return job;
}

ExplicitSeeds TwoPairs() {
  ExplicitSeeds seeds;
  seeds.ids = {1, 2};
  seeds.dst = {3, 4};
  seeds.times = {5, 6};
  seeds.edge_types = {7, 8};
  seeds.labels = Array::Adopt(std::vector<float>{0, 1});
  seeds.negatives = {1, 2, 3, 4};
  return seeds;
}

TEST(CheckExplicitSeedsTest, TakesColumnsOfOneLength) {
  EXPECT_TRUE(CheckExplicitSeeds(PairJob(), TwoPairs()).ok());
  ExplicitSeeds bare;
  bare.ids = {1, 2};
  bare.dst = {3, 4};
  EXPECT_TRUE(CheckExplicitSeeds(PairJob(), bare).ok());
  EXPECT_TRUE(CheckExplicitSeeds(PairJob(), ExplicitSeeds()).ok());
}

TEST(CheckExplicitSeedsTest, RefusesColumnsOfOtherLengths) {
  struct Spoilt {
    std::string message;
    std::function<void(ExplicitSeeds&)> spoil;
  };
  const std::vector<Spoilt> all = {
      {"1 times for 2 seeds", [](auto& s) { s.times.pop_back(); }},
      {"2 sources and 1 destinations", [](auto& s) { s.dst.pop_back(); }},
      {"2 sources and 0 destinations", [](auto& s) { s.dst.clear(); }},
      {"3 edge types for 2 seeds", [](auto& s) { s.edge_types.push_back(9); }},
      {"1 labels for 2 seeds",
       [](auto& s) { s.labels = Array::Adopt(std::vector<float>{0}); }},
      {"3 negatives for 2 seeds", [](auto& s) { s.negatives.pop_back(); }},
      {"1 negatives for 2 seeds", [](auto& s) { s.negatives = {1}; }}};
  for (const Spoilt& spoilt : all) {
    ExplicitSeeds seeds = TwoPairs();
    spoilt.spoil(seeds);
    const absl::Status status = CheckExplicitSeeds(PairJob(), seeds);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << spoilt.message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(spoilt.message));
  }
}

TEST(CheckExplicitSeedsTest, NodeSeedsHaveNoPairColumnsAndHaveTimesIfTemporal) {
  ResolvedJob job;
  ExplicitSeeds seeds;
  seeds.ids = {1, 2};
  EXPECT_TRUE(CheckExplicitSeeds(job, seeds).ok());
  seeds.times = {5, 6};
  EXPECT_THAT(std::string(CheckExplicitSeeds(job, seeds).message()),
              HasSubstr("the seeds have times, but the job is not temporal"));
  job.spec.temporal = TemporalStrategy::kUniform;
  EXPECT_TRUE(CheckExplicitSeeds(job, seeds).ok());
  seeds.dst = {3, 4};
  EXPECT_THAT(std::string(CheckExplicitSeeds(job, seeds).message()),
              HasSubstr("the seeds are pairs of nodes"));
}

}  // namespace
}  // namespace millrace
