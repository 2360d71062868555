// SPDX-License-Identifier: Apache-2.0
// Edge features, compared with the rows of the user's edge list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "common/sample/gather.h"
#include "tests/support/sampled.h"
#include "tests/support/variants.h"

namespace millrace {
namespace {

using testing::OpenGraph;
using testing::RandomGraph;
using testing::Sample;
using testing::TestGraph;
using testing::Variant;

class EdgeFeatureTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Partitions, EdgeFeatureTest,
                         ::testing::Values(0, 1, 3, 5));

TEST_P(EdgeFeatureTest, RowsMatchTheEdgeIds) {
  const TestGraph graph = RandomGraph(2);
  const auto source = OpenGraph(graph, GetParam());
  for (const Variant& variant : testing::SamplingVariants()) {
    if (!variant.has_edge_ids()) continue;
    for (const testing::Seeds& seeds : testing::SeedsFor(variant.Job())) {
      const auto batch =
          Sample(*source, variant.Job(), seeds, 0, /*edge_features=*/true);
      ASSERT_TRUE(batch.ok()) << variant.name << ": " << batch.status();
      EXPECT_GT(testing::ExpectFeaturesOfEdges(*batch, graph,
                                               source->manifest().schema),
                0)
          << variant.name;
    }
  }
}

TEST(EdgeFeaturesTest, ReturnsNoneUnlessRequested) {
  const auto source = OpenGraph(RandomGraph(2), 0);
  const auto batch =
      Sample(*source, testing::ExplicitJob({2}, "item"), {{0, 8}, {}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (const EdgeBlock& block : batch->edges) {
    EXPECT_FALSE(block.feature.present());
    EXPECT_FALSE(block.feature_row.present());
  }
}

TEST(EdgeFeaturesTest, GraphsWithoutEdgeFeaturesRefuseThem) {
  const auto source = OpenGraph(testing::SmallGraph(), 0);
  const absl::Status status =
      Sample(*source, testing::ExplicitJob({2}), {{0}, {}}, 0, true).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("no relation of the graph has features"));
}

TEST(EdgeFeaturesTest, RowsBeyondTheFileAreDamage) {
  TestGraph graph;
  graph.types = {{.count = 2}};
  graph.relations = {
      {.edges = {{0, 1}, {1, 1}}, .feature = testing::RampFeature(2, 1)}};
  const auto store = testing::TestStore(graph).Open();
  float value = -1;
  for (const uint64_t row : {1, 2}) {
    const absl::Status status = GatherEdgeRows(
        *store, 0, 0, std::span(&row, 1), reinterpret_cast<std::byte*>(&value));
    EXPECT_EQ(status.code(),
              row == 1 ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss)
        << status;
    EXPECT_EQ(value, 1);
  }
}

}  // namespace
}  // namespace millrace
