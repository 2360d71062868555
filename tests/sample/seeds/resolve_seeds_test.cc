// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/resolve_seeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/test_store.h"

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

TEST(ResolveIdsTest, FindsIdsByOriginalId) {
  const testing::TestStore stored(testing::SmallGraph(), 3);
  const std::unique_ptr<Store> store = stored.Open();
  const std::vector<int64_t> originals = {7, 0, 3, 3, 6, 1, 2, 4, 5};
  const auto ids = ResolveIds(*store, 0, originals).value();
  ASSERT_EQ(ids.size(), originals.size());
  const PartitionBook& book = store->book(0);
  for (size_t i = 0; i < ids.size(); ++i) {
    const int owner = book.Owner(ids[i]);
    EXPECT_EQ(store->partition(owner)->nodes[0].original_id.IntegerAt(
                  static_cast<int64_t>(ids[i] - book.begin(owner))),
              originals[i]);
  }
  for (const int64_t bad : {-1, 8}) {
    EXPECT_EQ(ResolveIds(*store, 0, std::vector<int64_t>{0, bad}).status(),
              absl::InvalidArgumentError(
                  "seed " + std::to_string(bad) +
                  " at position 1 is out of range; node type node has 8 "
                  "nodes"));
  }
  // Tables of three rows: original ids 3 to 5 are in that of partition 1.
  const std::unique_ptr<Store> others = stored.Open({0, 2});
  EXPECT_TRUE(ResolveIds(*others, 0, std::vector<int64_t>{2, 6}).ok());
  for (const int64_t original : {3, 5}) {
    EXPECT_EQ(ResolveIds(*others, 0, std::vector<int64_t>{original}).status(),
              absl::FailedPreconditionError(
                  "partition 1 is not mapped in this process"));
  }
}

TEST(ResolveIdsTest, NamesADamagedTable) {
  const testing::TestStore stored(testing::SmallGraph(), 2);
  const auto path = stored.path() / LookupPath(1, "node");
  const uint32_t id = 8;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-4, std::ios::end);  // original id 7, at index 3 of its table
  file.write(reinterpret_cast<const char*>(&id), sizeof id);
  file.close();
  const absl::Status status =
      ResolveIds(*stored.Open(), 0, std::vector<int64_t>{6, 7}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(),
            path.string() +
                " is damaged: index 3 is 8, but there are 8 "
                "nodes\nrestore the store from a copy and verify "
                "it");
}

}  // namespace
}  // namespace millrace
