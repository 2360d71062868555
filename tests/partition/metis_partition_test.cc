// SPDX-License-Identifier: Apache-2.0
#include "common/partition/metis_partition.h"

#include <cstdint>
#include <span>
#include <vector>

#include "common/partition/metis_graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kLimit = 2147483647;  // 2^31 - 1

TEST(CheckMetisSize, AcceptsWhatFitsIn32Bits) {
  EXPECT_TRUE(CheckMetisSize(kLimit, kLimit / 2).ok());
}

TEST(CheckMetisSize, NamesNumberAndLimit) {
  const absl::Status edges = CheckMetisSize(10, kLimit / 2 + 1);
  EXPECT_EQ(edges.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(edges.message(),
              AllOf(HasSubstr("2147483648 adjacency entries"),
                    HasSubstr("2147483647"), HasSubstr("method metis: ")));
  const absl::Status nodes = CheckMetisSize(kLimit + 1, 10);
  EXPECT_EQ(nodes.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(nodes.message(),
              AllOf(HasSubstr("2147483648 nodes"), HasSubstr("2147483647"),
                    HasSubstr("method metis: ")));
}

// Users 0 to 2 are vertices 0 to 2; items 0 and 1 are vertices 3 and 4.
TEST(BuildMetisGraph, MergesEdgesOfBothDirectionsAndAllRelations) {
  testing::TestGraph graph;
  graph.types = {{.name = "user", .count = 3}, {.name = "item", .count = 2}};
  graph.relations = {
      {.src = "user",
       .name = "knows",
       .dst = "user",
       .edges = {{0, 1}, {0, 1}, {1, 0}, {2, 2}, {2, 1}}},
      {.src = "user",
       .name = "buys",
       .dst = "item",
       .edges = {{0, 0}, {0, 0}, {2, 1}}},
      {.src = "item", .name = "likes", .dst = "user", .edges = {{0, 0}}}};
  const auto built = BuildMetisGraph(*testing::TestStore(graph).Open());
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_THAT(built->type_begin, ElementsAre(0, 3, 5));
  EXPECT_THAT(built->starts, ElementsAre(0, 2, 4, 6, 7, 8));
  const auto entries = static_cast<size_t>(built->entries());
  EXPECT_THAT(std::span(built->neighbors.get(), entries),
              ElementsAre(1, 3, 0, 2, 1, 4, 0, 2));
  EXPECT_THAT(std::span(built->edge_weights.get(), entries),
              ElementsAre(3, 3, 3, 1, 1, 1, 3, 1));
  // Each vertex has three weights: whether it is a user, whether it is an item,
  // and its in-edges.
  EXPECT_EQ(built->constraints, 3);
  EXPECT_THAT(built->weights, ElementsAre(1, 0, 2,  //
                                          1, 0, 3,  //
                                          1, 0, 1,  //
                                          0, 1, 2,  //
                                          0, 1, 1));
}

}  // namespace
}  // namespace millrace
