// SPDX-License-Identifier: Apache-2.0
// How much memory each kind of call needs: a server with one byte less refuses
// it and names what it needs.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/fleet_harness.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using Stub = v1::Sampler::Stub;

// Bytes of a frame's payload, of which a stream holds six.
constexpr uint64_t kFrameBytes = 512 << 10;

template <typename T>
std::string BytesOfValues(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// A server of SmallGraph(), in which nodes have their original ids.
class MemoryLimitsTest : public ::testing::Test {
 protected:
  using MakeCall = std::function<absl::Status(Stub&)>;

  // Makes a call with the memory that it says it needs, starting with none,
  // until it succeeds. Returns what it needed, step by step.
  std::vector<uint64_t> Needs(uint64_t ServerOptions::*limit,
                              const MakeCall& call) const {
    std::vector<uint64_t> needs;
    while (needs.size() < 10) {
      ServerOptions options;
      options.*limit = needs.empty() ? 1 : needs.back();
      const auto server = SamplerServer::Start(stored_.Open(), options).value();
      const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
          server->address(), ::grpc::InsecureChannelCredentials(),
          ClientChannelArguments()));
      const absl::Status status = call(*stub);
      if (status.ok()) break;
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
      const std::string message(status.message());
      const size_t at = message.find(" needs ");
      if (at == message.npos) {
        ADD_FAILURE() << status;
        break;
      }
      needs.push_back(std::strtoull(&message[at + 7], nullptr, 10));
    }
    return needs;
  }

  static absl::Status Expand(Stub& stub, const v1::ExpandRequest& request) {
    ::grpc::ClientContext context;
    testing::SetDeadline(context, absl::Seconds(30));
    v1::ExpandReply reply;
    return FromGrpcStatus(stub.Expand(&context, request, &reply));
  }
  std::vector<uint64_t> NeedsOfExpand(const v1::ExpandRequest& request) const {
    return Needs(&ServerOptions::max_leaf_bytes,
                 [&request](Stub& stub) { return Expand(stub, request); });
  }

  const testing::TestStore stored_{testing::SmallGraph()};
};

// Nodes 1 and 5 have 4 and 1 in-edges.
v1::ExpandRequest ExpandTwoNodes(int fanout) {
  v1::ExpandRequest request;
  v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
  frontier.set_ids(BytesOfValues<uint32_t>({1, 5}));
  frontier.set_fanout(fanout);
  return request;
}

// Each byte of a request counts four times, each message as 384 bytes, and each
// field as 128.
TEST_F(MemoryLimitsTest, LookupsOfEdgesNeed48BytesForEach) {
  constexpr size_t kPairs = 100;
  v1::HasEdgesRequest request;
  request.set_src_ids(BytesOfValues(std::vector<uint32_t>(kPairs, 1)));
  request.set_dst_ids(BytesOfValues(std::vector<uint32_t>(kPairs, 0)));
  const uint64_t first = 4 * request.ByteSizeLong() + 384 + 2 * 128;
  EXPECT_THAT(
      Needs(&ServerOptions::max_leaf_bytes,
            [&request](Stub& stub) {
              ::grpc::ClientContext context;
              testing::SetDeadline(context, absl::Seconds(30));
              v1::HasEdgesReply reply;
              return FromGrpcStatus(stub.HasEdges(&context, request, &reply));
            }),
      ::testing::ElementsAre(first, first + 48 * kPairs));
}

TEST_F(MemoryLimitsTest, RowsNeedAsMuchAsAFewFrames) {
  const auto needs_of_rows = [this](size_t rows) {
    v1::GatherRequest request;
    request.set_ids(BytesOfValues(std::vector<uint32_t>(rows, 3)));
    const uint64_t first = 4 * request.ByteSizeLong() + 384 + 128;
    const std::vector<uint64_t> needs =
        Needs(&ServerOptions::max_leaf_bytes, [&request](Stub& stub) {
          return testing::CallGather(stub, request).status;
        });
    EXPECT_EQ(needs.size(), 2u);
    EXPECT_EQ(needs.front(), first);
    return needs.back() - first;
  };
  EXPECT_EQ(needs_of_rows(100), 100u * 12);
  EXPECT_EQ(needs_of_rows(6 * kFrameBytes / 12), 6 * kFrameBytes);
  EXPECT_EQ(needs_of_rows(6 * kFrameBytes / 12 + 9), 6 * kFrameBytes);
}

// Three times what it may have: a count and the picks of each node.
TEST_F(MemoryLimitsTest, RepliesNeedThreeTimesTheirBytes) {
  const auto needs_of_reply = [this](const v1::ExpandRequest& request) {
    const std::vector<uint64_t> needs = NeedsOfExpand(request);
    EXPECT_EQ(needs.size(), 2u);
    EXPECT_EQ(needs.front(), 4 * request.ByteSizeLong() + 2 * 384 +
                                 (request.edge_ids() ? 4u : 3u) * 128);
    return needs.back() - needs.front();
  };
  EXPECT_EQ(needs_of_reply(ExpandTwoNodes(kAllNeighbors)), 3u * (8 + 5 * 4));
  EXPECT_EQ(needs_of_reply(ExpandTwoNodes(2)), 3u * (8 + 3 * 4));
  v1::ExpandRequest with_ids = ExpandTwoNodes(2);
  with_ids.set_edge_ids(true);
  EXPECT_EQ(needs_of_reply(with_ids), 3u * (8 + 3 * 12));
}

// The sets are needed until the end.
TEST_F(MemoryLimitsTest, SetsOfFrontiersNeedManyTimesTheirBytes) {
  constexpr uint64_t kReply = 3 * (8 + 5 * 4);
  v1::ExpandRequest request = ExpandTwoNodes(kAllNeighbors);
  v1::ExpandRequest::Frontier& frontier = *request.mutable_frontiers(0);
  const std::vector<uint32_t> hundred(100, 2);
  frontier.set_excluded_nodes(BytesOfValues(hundred));
  frontier.set_excluded_neighbors(BytesOfValues(hundred));
  std::vector<uint64_t> needs = NeedsOfExpand(request);
  ASSERT_EQ(needs.size(), 3u);
  EXPECT_EQ(needs[1], needs[0] + 48 * 400);
  EXPECT_EQ(needs[2], needs[1] + kReply);

  request = ExpandTwoNodes(kAllNeighbors);
  request.set_rule(v1::ExpandRequest::RULE_AMONG);
  request.mutable_frontiers(0)->set_among(
      BytesOfValues<uint32_t>({0, 1, 2, 3, 4, 5, 6, 7}));
  needs = NeedsOfExpand(request);
  ASSERT_EQ(needs.size(), 3u);
  EXPECT_EQ(needs[1], needs[0] + 6 * 32);
  EXPECT_EQ(needs[2], needs[1] + kReply);
}

// A batch that just fits is made: what its request took is given back before
// the rest is taken.
TEST_F(MemoryLimitsTest, ABatchFitsExactlyIntoItsRequirement) {
  JobSpec spec;
  spec.fanouts = {2};
  spec.batch_size = 4;
  const v1::SampleRequest request =
      testing::SampleRequestOf(spec, Columns(), 0);
  const std::vector<uint64_t> needs =
      Needs(&ServerOptions::max_inflight_bytes, [&request](Stub& stub) {
        return testing::CallSample(stub, request).status;
      });
  ASSERT_GE(needs.size(), 2u);
  // The request and, from then on, the frames too.
  EXPECT_LT(needs[0], 10000u);
  EXPECT_GT(needs[1], 6 * kFrameBytes + needs[0]);
  EXPECT_LT(needs.back(), 6 * kFrameBytes + needs[0] + 10000);
}

// The size of a Describe request is limited by itself.
TEST_F(MemoryLimitsTest, DescribeRequestsHaveAtMostAKibibyte) {
  const auto server =
      SamplerServer::Start(stored_.Open(), ServerOptions()).value();
  const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
      server->address(), ::grpc::InsecureChannelCredentials(),
      ClientChannelArguments()));
  for (const size_t bytes : {1024, 1025}) {
    v1::DescribeRequest request;
    // Its tag and length take three bytes.
    request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
        15, std::string(bytes - 3, 'x'));
    ASSERT_EQ(request.ByteSizeLong(), bytes);
    ::grpc::ClientContext context;
    testing::SetDeadline(context, absl::Seconds(30));
    v1::DescribeReply reply;
    const absl::Status status =
        FromGrpcStatus(stub->Describe(&context, request, &reply));
    EXPECT_EQ(status.ok(), bytes == 1024) << status;
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
      EXPECT_THAT(std::string(status.message()), HasSubstr("has 1025 bytes"));
    }
  }
}

}  // namespace
}  // namespace millrace
