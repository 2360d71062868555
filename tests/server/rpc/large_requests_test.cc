// SPDX-License-Identifier: Apache-2.0
// Hops whose requests to another owner do not fit into one message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "common/grpc/channel_args.h"
#include "tests/support/fleet_harness.h"

namespace millrace {
namespace {

using testing::CallSample;
using testing::FleetHarness;
using testing::SampleRequestOf;
using testing::StreamResult;
using testing::TestGraph;

// The number of rows of the array of a kind in a stream, and its first bytes.
int64_t RowsOf(const StreamResult& stream, v1::ArrayInfo::Kind kind) {
  for (const v1::ArrayInfo& array : stream.layout.arrays()) {
    if (array.kind() == kind) return static_cast<int64_t>(array.shape(0));
  }
  return -1;
}

std::string Ids(const std::vector<uint32_t>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * 4};
}

// The batch has the maximum number of seeds, all from the other partition: with
// trees and times they do not fit into one message.
TEST(LargeRequestsTest, TemporalHopsAreRequestedInPieces) {
  constexpr size_t kSeeds = size_t{1} << 20;
  static_assert(kSeeds * (4 + 4 + 8) >= kMaxMessageBytes);
  TestGraph graph;
  graph.types = {{.count = 4}};
  graph.relations = {
      {.edges = {{0, 1}, {2, 1}, {2, 3}}, .time = {5, 6, 7}, .out = false}};
  FleetHarness fleet(graph, 2);
  JobSpec spec;
  spec.split.clear();
  spec.fanouts = {1};
  spec.temporal = TemporalStrategy::kLast;
  Columns columns;
  columns.original_ids = false;
  v1::SampleRequest request = SampleRequestOf(spec, columns, 0);
  const auto seed = static_cast<uint32_t>(fleet.store()->book(0).begin(1));
  request.set_explicit_ids(Ids(std::vector<uint32_t>(kSeeds, seed)));
  // No edge is early enough, except for the last seed.
  std::vector<int64_t> times(kSeeds, 1);
  times.back() = 9;
  request.set_explicit_times(times.data(), times.size() * 8);
  const StreamResult stream = CallSample(*fleet.Stub(0), request);
  ASSERT_TRUE(stream.status.ok()) << stream.status;
  EXPECT_EQ(RowsOf(stream, v1::ArrayInfo::KIND_NODE_ID),
            static_cast<int64_t>(kSeeds) + 1);
  EXPECT_EQ(RowsOf(stream, v1::ArrayInfo::KIND_NEIGHBOR), 1);
}

// The set of the batch's nodes is sent once for each relation.
TEST(LargeRequestsTest, InducedEdgesOfManyRelationsAreRequestedInPieces) {
  constexpr int64_t kLeaves = 600000;
  constexpr int kRelations = 8;
  static_assert(kLeaves * 4 * kRelations > kMaxMessageBytes);
  TestGraph graph;
  graph.types = {{.name = "leaf", .count = kLeaves},
                 {.name = "hub", .count = 1}};
  graph.relations = {{.src = "hub",
                      .name = "finds",
                      .dst = "leaf",
                      .edges = {{0, 3}},
                      .out = false}};
  for (int r = 0; r < kRelations; ++r) {
    graph.relations.push_back({.src = "leaf",
                               .name = "r" + std::to_string(r),
                               .dst = "hub",
                               .edges = {{7, 0}},
                               .out = false});
  }
  FleetHarness fleet(graph, 2);
  ASSERT_EQ(fleet.store()->book(1).Owner(0), 1);
  JobSpec spec;
  spec.split.clear();
  spec.seed_type = "leaf";
  spec.method = SampleMethod::kInduced;
  spec.relation_fanouts["hub__finds__leaf"] = {1};
  v1::SampleRequest request = SampleRequestOf(spec, Columns(), 0);
  std::vector<uint32_t> seeds(kLeaves);
  std::iota(seeds.begin(), seeds.end(), 0u);
  request.set_explicit_ids(Ids(seeds));
  const StreamResult stream = CallSample(*fleet.Stub(0), request);
  ASSERT_TRUE(stream.status.ok()) << stream.status;
  int64_t edges = 0;
  for (const v1::ArrayInfo& array : stream.layout.arrays()) {
    if (array.kind() == v1::ArrayInfo::KIND_NEIGHBOR) {
      edges += static_cast<int64_t>(array.shape(0));
    }
  }
  EXPECT_EQ(edges, 1 + kRelations);
}

// A single set must fit into a message: the batch is refused before it is sent.
TEST(LargeRequestsTest, InducedEdgesAmongTooManyNodesAreRefused) {
  constexpr int64_t kLeaves = kMaxMessageBytes / 4 + 1;
  TestGraph graph;
  graph.types = {{.name = "leaf", .count = kLeaves},
                 {.name = "hub", .count = 1}};
  graph.relations = {{.src = "leaf", .name = "to", .dst = "hub", .out = false}};
  for (int64_t leaf = 0; leaf < kLeaves; ++leaf) {
    graph.relations[0].edges.emplace_back(leaf, 0);
  }
  FleetHarness fleet(graph, 2);
  ASSERT_EQ(fleet.store()->book(1).Owner(0), 1);
  JobSpec spec;
  spec.split.clear();
  spec.seed_type = "hub";
  spec.method = SampleMethod::kInduced;
  spec.fanouts = {kAllNeighbors};
  v1::SampleRequest request = SampleRequestOf(spec, Columns(), 0);
  request.set_explicit_ids(Ids({0}));
  const absl::Status status = CallSample(*fleet.Stub(0), request).status;
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::StartsWith("asking partition 1 for "
                                    "the edges among the nodes"));
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("the limit is 16777216"));
}

}  // namespace
}  // namespace millrace
