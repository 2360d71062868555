// SPDX-License-Identifier: Apache-2.0
// Draws from very long lists, which stop soon after their call is cancelled.
#include <gtest/gtest.h>

#include <vector>

#include "common/base/steady_time.h"
#include "common/sample/list_lengths.h"
#include "tests/support/fleet_harness.h"

namespace millrace {
namespace {

using testing::CallSample;
using testing::FleetHarness;
using testing::SampleRequestOf;
using testing::TestGraph;

constexpr int64_t kEdges = 1000000;
constexpr int64_t kLeaves = 10;

// Node 0 has all the edges; LABOR reads every entry of its list.
TestGraph Star() {
  TestGraph graph;
  graph.types = {{.count = kLeaves + 1}};
  graph.relations = {{.out = false}};
  for (int64_t edge = 0; edge < kEdges; ++edge) {
    graph.relations[0].edges.emplace_back(1 + edge % kLeaves, 0);
  }
  return graph;
}

std::string Hubs(size_t count) {
  return std::string(count * sizeof(uint32_t), '\0');
}

class LongListsTest : public ::testing::Test {
 protected:
  LongListsTest() : fleet_(Star(), 1, OneThread()), stub_(fleet_.Stub(0)) {}

  static ServerOptions OneThread() {
    ServerOptions options;
    options.threads = 1;
    return options;
  }

  absl::Status Expand(size_t hubs, absl::Duration deadline) {
    v1::ExpandRequest request;
    request.set_rule(v1::ExpandRequest::RULE_LABOR);
    v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
    frontier.set_fanout(1);
    frontier.set_ids(Hubs(hubs));
    ::grpc::ClientContext context;
    testing::SetDeadline(context, deadline);
    v1::ExpandReply reply;
    return FromGrpcStatus(stub_->Expand(&context, request, &reply));
  }

  // Samples one batch of hubs, each with a tree of its own.
  absl::Status Sample(size_t hubs, absl::Duration deadline) {
    JobSpec spec;
    spec.split.clear();
    spec.fanouts = {1};
    spec.method = SampleMethod::kLabor;
    spec.disjoint = true;
    v1::SampleRequest request = SampleRequestOf(spec, Columns(), 0);
    request.set_explicit_ids(Hubs(hubs));
    return CallSample(*stub_, request, deadline).status;
  }

  FleetHarness fleet_;
  const std::unique_ptr<v1::Sampler::Stub> stub_;
};

TEST_F(LongListsTest, NodesAreDrawnForBySlots) {
  const ListLengths lengths(*fleet_.store(), 0, 0, Direction::kIn);
  EXPECT_EQ(lengths.Of(0), kEdges);
  EXPECT_EQ(lengths.Of(1), 0);
  EXPECT_EQ(lengths.Of(kEdges + 100), 0);
  const std::vector<uint64_t> ids = {0, 1, 2, 0, 3, 0, 0};
  EXPECT_EQ(NodesAtOnce(lengths, ids, 10), 3u);
  EXPECT_EQ(NodesAtOnce(lengths, ids, 2), 2u);
  EXPECT_EQ(NodesAtOnce(lengths, std::span(ids).subspan(5), 10), 1u);
  EXPECT_EQ(NodesAtOnce(lengths, std::span(ids).subspan(7), 10), 0u);
}

// A call for one hub waits only for what is left of a cancelled draw, which is
// far less than the whole draw would take.
TEST_F(LongListsTest, GivenUpDrawsMakeRoom) {
  const SteadyTime before = SteadyNow();
  ASSERT_TRUE(Expand(8, absl::Minutes(1)).ok());
  const absl::Duration each = (SteadyNow() - before) / 8;
  ASSERT_TRUE(Sample(2, absl::Minutes(1)).ok());
  constexpr size_t kMany = 60000;
  for (const bool expand : {true, false}) {
    const absl::Duration deadline = absl::Milliseconds(500);
    const absl::Status status =
        expand ? Expand(kMany, deadline) : Sample(kMany, deadline);
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    const SteadyTime start = SteadyNow();
    EXPECT_TRUE(expand ? Expand(1, absl::Minutes(5)).ok()
                       : Sample(1, absl::Minutes(5)).ok());
    EXPECT_LT(SteadyNow() - start, 1000 * each);
  }
}

// Searching the list once per pair, 10^12 entries in all, would take minutes.
TEST_F(LongListsTest, ManyPairsOfAHubAreFoundAtOnce) {
  v1::HasEdgesRequest request;
  constexpr size_t kPairs = 1000000;
  request.set_src_ids(Hubs(kPairs));
  request.set_dst_ids(Hubs(kPairs));
  ::grpc::ClientContext context;
  testing::SetDeadline(context, absl::Minutes(1));
  v1::HasEdgesReply reply;
  const absl::Status status =
      FromGrpcStatus(stub_->HasEdges(&context, request, &reply));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.found(), std::string(kPairs, '\0'));
}

// Comparing every entry with each excluded one would take minutes, too.
TEST_F(LongListsTest, ManyExcludedEntriesOfAHubAreFoundAtOnce) {
  v1::ExpandRequest request;
  constexpr size_t kExcluded = 1000000;
  v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
  frontier.set_fanout(kAllNeighbors);
  frontier.set_ids(Hubs(1));
  frontier.set_excluded_nodes(Hubs(kExcluded));
  frontier.set_excluded_neighbors(Hubs(kExcluded));
  ::grpc::ClientContext context;
  testing::SetDeadline(context, absl::Minutes(1));
  v1::ExpandReply reply;
  const absl::Status status =
      FromGrpcStatus(stub_->Expand(&context, request, &reply));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.picks(0).neighbors().size(), kEdges * sizeof(uint32_t));
}

}  // namespace
}  // namespace millrace
