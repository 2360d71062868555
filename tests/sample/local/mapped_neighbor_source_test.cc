// SPDX-License-Identifier: Apache-2.0
#include "common/sample/local/mapped_neighbor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kHuge = std::numeric_limits<int32_t>::max();

// Half of the nodes have two in-edges, the others none.
class MappedNeighborSourceTest : public ::testing::Test {
 protected:
  MappedNeighborSourceTest() {
    testing::TestGraph graph;
    graph.types = {{.count = 8}};
    graph.relations = {
        {.edges = {
             {1, 0}, {2, 0}, {3, 2}, {4, 2}, {5, 4}, {6, 4}, {7, 6}, {0, 6}}}};
    store_ = testing::TestStore(graph, 2).Open();
    for (uint64_t id = 0; id < 8; ++id) ids_.push_back(id);
  }

  // Draws from the lists of `nodes` nodes.
  absl::Status Draw(int32_t fanout, size_t nodes, Picks& picks) {
    std::vector<uint64_t> ids(nodes);
    for (size_t i = 0; i < nodes; ++i) ids[i] = ids_[i % 8];
    const Frontier frontier = {.relation = 0, .fanout = fanout, .ids = ids};
    return MappedNeighborSource(*store_).Expand(context_, {&frontier, 1},
                                                {&picks, 1});
  }

  std::unique_ptr<Store> store_;
  std::vector<uint64_t> ids_;
  DrawContext context_;
};

// What counts is the lengths of the lists, not what fanouts would allow.
TEST_F(MappedNeighborSourceTest, LargeFanoutsOfShortListsFit) {
  for (const int32_t fanout : {kHuge, 2, kAllNeighbors}) {
    Picks picks;
    ASSERT_EQ(Draw(fanout, 80000, picks), absl::OkStatus());
    EXPECT_EQ(picks.neighbors.size(), 80000u);
    ASSERT_EQ(picks.counts.size(), 80000u);
  }
}

// With replacement, a list of any length gives as many neighbours as asked for.
TEST_F(MappedNeighborSourceTest, NamesPicksThatDoNotFit) {
  context_.replace = true;
  context_.hop = 1;
  Picks picks;
  const absl::Status status = Draw(kHuge, 80000, picks);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  // 40000 nodes with in-edges, each with 2^31 - 1 neighbours.
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("hop 1 of a batch with 85899345880000 neighbours of "
                        "80000 nodes"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("use a smaller batch size or fanouts"));
}

TEST_F(MappedNeighborSourceTest, NamesWalksThatDoNotFit) {
  MappedNeighborSource source(*store_);
  EXPECT_EQ(source.Reserve(1 << 20), absl::OkStatus());
  const absl::Status status = source.Reserve(uint64_t{1} << 60);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("a batch of walks"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("use a smaller batch size, or fewer or shorter walks"));
}

}  // namespace
}  // namespace millrace
