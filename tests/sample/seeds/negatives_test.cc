// SPDX-License-Identifier: Apache-2.0
// Negatives, compared with docs/determinism.md, section 6, implemented here
// again without shortcuts.
#include "common/sample/seeds/negatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/random/philox.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Pair = std::pair<uint64_t, uint64_t>;

constexpr uint64_t kJobSeed = 0x123456789ABCDEF;
constexpr uint32_t kEpoch = 3;
constexpr uint32_t kBatch = 4;
constexpr RelationIndex kRelation = 1;
constexpr int64_t kUsers = 7;
constexpr int64_t kItems = 11;
constexpr uint32_t kNegative = 3;  // the purpose's number

// draw(q, i, n) of the `redraw`th draw, q and i below 2^32.
int64_t Draw(uint32_t redraw, uint32_t q, uint32_t i, uint64_t n) {
  const PhiloxWords seed = {static_cast<uint32_t>(kJobSeed),
                            static_cast<uint32_t>(kJobSeed >> 32)};
  for (uint32_t retry = 0;; ++retry) {
    const PhiloxWords key = Philox(
        {seed[0], seed[1]},
        {kEpoch, kBatch, kNegative + 256 * retry, redraw * 65536 + kRelation});
    const uint64_t word = Philox({key[0], key[1]}, {q, 0, 0, 0})[i];
    const uint64_t product = word * n;
    const uint64_t all = uint64_t{1} << 32;
    if (product % all >= all % n) return static_cast<int64_t>(product / all);
  }
}

// Ids are the original ids in reverse order; edges are given by original ids.
class FakeDirectory final : public EdgeDirectory {
 public:
  explicit FakeDirectory(std::set<Pair> edges) : edges_(std::move(edges)) {}

  static uint64_t Flip(TypeIndex type, uint64_t id) {
    return static_cast<uint64_t>(type == 0 ? kUsers : kItems) - 1 - id;
  }

  absl::StatusOr<std::vector<uint64_t>> Resolve(
      TypeIndex type, std::span<const int64_t> original_ids) override {
    std::vector<uint64_t> ids;
    for (const int64_t original : original_ids) {
      ids.push_back(Flip(type, static_cast<uint64_t>(original)));
    }
    return ids;
  }
  absl::StatusOr<std::vector<uint8_t>> HasEdges(
      RelationIndex relation, std::span<const uint64_t> src,
      std::span<const uint64_t> dst) override {
    EXPECT_EQ(relation, kRelation);
    std::vector<uint8_t> found;
    for (size_t i = 0; i < src.size(); ++i) {
      found.push_back(edges_.contains({Flip(0, src[i]), Flip(1, dst[i])}));
    }
    looked_up_ += src.size();
    return found;
  }
  size_t looked_up() const { return looked_up_; }

 private:
  const std::set<Pair> edges_;
  size_t looked_up_ = 0;
};

std::set<Pair> AllPairs() {
  std::set<Pair> pairs;
  for (uint64_t user = 0; user < kUsers; ++user) {
    for (uint64_t item = 0; item < kItems; ++item) pairs.emplace(user, item);
  }
  return pairs;
}

// Two thirds of all pairs.
std::set<Pair> ManyPairs() {
  std::set<Pair> pairs;
  for (const Pair& pair : AllPairs()) {
    if ((pair.first + 2 * pair.second) % 3 != 0) pairs.insert(pair);
  }
  return pairs;
}

class NegativesTest : public ::testing::Test {
 protected:
  NegativesTest() {
    manifest_.schema.node_types = {{.name = "user", .count = kUsers},
                                   {.name = "item", .count = kItems}};
    manifest_.schema.relations.resize(2);
    Relation& relation = manifest_.schema.relations[kRelation];
    relation.src = 0;
    relation.dst = 1;
    job_.spec.seed_kind = SeedKind::kEdge;
    job_.spec.seed = kJobSeed;
    job_.seed_relation = kRelation;
    job_.seed_type = 1;
    for (const int64_t user : {0, 3, 5, 3, 6}) {
      seeds_.Add(FakeDirectory::Flip(0, user), user);
      seeds_.dst.Add(FakeDirectory::Flip(1, user), user);
    }
  }

  absl::Status DrawAll(Negatives negatives, FakeDirectory& directory) {
    job_.spec.negatives = negatives;
    return DrawNegatives(job_, manifest_, kEpoch, kBatch, directory, seeds_);
  }

  static void ExpectIds(const ResolvedNodes& nodes, TypeIndex type) {
    ASSERT_EQ(nodes.ids.size(), nodes.original_ids.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      EXPECT_EQ(nodes.ids[i],
                FakeDirectory::Flip(
                    type, static_cast<uint64_t>(nodes.original_ids[i])));
    }
  }

  Manifest manifest_;
  ResolvedJob job_;
  ResolvedSeeds seeds_;
};

TEST_F(NegativesTest, RedrawsTripletsThatAreEdges) {
  const std::set<Pair> edges = ManyPairs();
  FakeDirectory directory(edges);
  ASSERT_TRUE(DrawAll({NegativeMode::kTriplet, 4}, directory).ok());
  ASSERT_EQ(seeds_.negative_dst.size(), 20u);
  EXPECT_THAT(seeds_.negative_src.ids, IsEmpty());
  ExpectIds(seeds_.negative_dst, 1);
  uint32_t most = 0;
  for (uint32_t q = 0; q < 20; ++q) {
    const auto user = static_cast<uint64_t>(seeds_.original_ids[q / 4]);
    uint32_t redraw = 0;
    int64_t item = Draw(redraw, q, 2, kItems);
    while (edges.contains({user, item})) item = Draw(++redraw, q, 2, kItems);
    EXPECT_EQ(seeds_.negative_dst.original_ids[q], item) << q;
    most = std::max(most, redraw);
  }
  EXPECT_GT(most, 2u);
  EXPECT_EQ(seeds_.false_negatives, 0u);
}

TEST_F(NegativesTest, RedrawsPairsThatAreEdges) {
  const std::set<Pair> edges = ManyPairs();
  FakeDirectory directory(edges);
  // 7.5 pairs are rounded up to 8.
  ASSERT_TRUE(DrawAll({NegativeMode::kBinary, 1.5}, directory).ok());
  ASSERT_EQ(seeds_.negative_dst.size(), 8u);
  ExpectIds(seeds_.negative_src, 0);
  ExpectIds(seeds_.negative_dst, 1);
  for (uint32_t q = 0; q < 8; ++q) {
    uint32_t redraw = 0;
    const auto pair = [&] {
      return Pair(Draw(redraw, q, 0, kUsers), Draw(redraw, q, 2, kItems));
    };
    while (edges.contains(pair())) ++redraw;
    EXPECT_EQ(Pair(seeds_.negative_src.original_ids[q],
                   seeds_.negative_dst.original_ids[q]),
              pair())
        << q;
  }
}

// If all pairs are edges of the graph, the last redraw is kept.
TEST_F(NegativesTest, EdgesLeftAfterTwentyRedrawsAreKeptAndCounted) {
  FakeDirectory directory(AllPairs());
  ASSERT_TRUE(DrawAll({NegativeMode::kTriplet, 2}, directory).ok());
  for (uint32_t q = 0; q < 10; ++q) {
    EXPECT_EQ(seeds_.negative_dst.original_ids[q], Draw(20, q, 2, kItems)) << q;
  }
  EXPECT_EQ(seeds_.false_negatives, 10u);
  EXPECT_EQ(directory.looked_up(), 21u * 10);
}

TEST_F(NegativesTest, SharedNegativesAreNotChecked) {
  FakeDirectory directory(AllPairs());
  ASSERT_TRUE(DrawAll({NegativeMode::kShared, 3}, directory).ok());
  EXPECT_THAT(seeds_.negative_dst.original_ids,
              ElementsAre(Draw(0, 0, 2, kItems), Draw(0, 1, 2, kItems),
                          Draw(0, 2, 2, kItems)));
  EXPECT_EQ(seeds_.false_negatives, 0u);
  EXPECT_EQ(directory.looked_up(), 0u);
}

TEST_F(NegativesTest, GivenNegativesAreKeptUnlessTheJobDrawsItsOwn) {
  seeds_.negative_dst.Add(1, 9);
  FakeDirectory directory({});
  ASSERT_TRUE(DrawAll({NegativeMode::kNone, 0}, directory).ok());
  EXPECT_THAT(seeds_.negative_dst.original_ids, ElementsAre(9));
  ASSERT_TRUE(DrawAll({NegativeMode::kInBatch, 0}, directory).ok());
  EXPECT_THAT(seeds_.negative_dst.original_ids, IsEmpty());
}

// They are refused before any is drawn or memory is reserved for them.
TEST_F(NegativesTest, MoreThanABatchCanHoldAreRefused) {
  constexpr size_t kSeeds = 65;
  seeds_.ids.resize(kSeeds, 0);
  FakeDirectory directory({});
  const absl::Status status =
      DrawAll({NegativeMode::kTriplet, 1 << 20}, directory);
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("68157440 negatives; the limit is 67108864"));
  EXPECT_THAT(seeds_.negative_dst.ids, IsEmpty());
}

}  // namespace
}  // namespace millrace
