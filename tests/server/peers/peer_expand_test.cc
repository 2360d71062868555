// SPDX-License-Identifier: Apache-2.0
// How a home handles Expand replies that no correct server sends.
#include "server/peers/peer_expand.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/grpc/status.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/sampled.h"
#include "tests/support/scripted_sampler.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::ScriptedSampler;

// A home of partition 0 and a server of partition 1 whose replies are edited.
class PeerExpandTest : public ::testing::Test {
 protected:
  PeerExpandTest()
      : fleet_(testing::RandomGraph(1), 2),
        peer_(fleet_.Stub(1), ScriptedSampler::Script()) {
    ServerOptions options;
    options.peer_wait = absl::Seconds(5);
    options.peers = peer_.address();
    home_ = SamplerServer::Start(
                Store::Open(fleet_.store()->path(), {0}).value(), options)
                .value();
  }

  // A batch of items, which have in-lists of two relations.
  absl::Status Sample() {
    JobSpec spec;
    spec.seed_type = "item";
    spec.fanouts = {3};
    spec.batch_size = 20;
    const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
        home_->address(), ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments()));
    return testing::CallSample(*stub,
                               testing::SampleRequestOf(spec, Columns(), 0))
        .status;
  }

  testing::FleetHarness fleet_;
  ScriptedSampler peer_;
  std::unique_ptr<SamplerServer> home_;
};

// Leaves out the last node of an answer.
void DropLastNode(v1::ExpandReply::Picks& picks) {
  std::string& counts = *picks.mutable_counts();
  uint32_t last = 0;
  ASSERT_GE(counts.size(), 2 * sizeof last);
  std::memcpy(&last, &counts[counts.size() - sizeof last], sizeof last);
  counts.resize(counts.size() - sizeof last);
  std::string& neighbors = *picks.mutable_neighbors();
  neighbors.resize(neighbors.size() - last * sizeof(uint32_t));
}

TEST_F(PeerExpandTest, RepliesThatDoNotFitTheRequestAreNamed) {
  ASSERT_EQ(Sample(), absl::OkStatus());
  struct Case {
    std::string message;
    std::function<void(v1::ExpandReply&)> edit;
  };
  const std::vector<Case> cases = {
      {"the reply has gaps",
       [](v1::ExpandReply& reply) { DropLastNode(*reply.mutable_picks(0)); }},
      {"the reply answers more than was asked",
       [](v1::ExpandReply& reply) { reply.add_picks(); }},
      {"the reply answers nothing",
       [](v1::ExpandReply& reply) { reply.clear_picks(); }},
      {"the reply answers nothing",
       [](v1::ExpandReply& reply) {
         reply.clear_picks();
         reply.add_picks();
       }},
      {"are inconsistent", [](v1::ExpandReply& reply) {
         reply.mutable_picks(1)->mutable_counts()->clear();
       }}};
  for (const Case& wrong : cases) {
    peer_.EditExpand([&wrong](v1::ExpandReply& reply) {
      ASSERT_EQ(reply.picks_size(), 2);
      wrong.edit(reply);
    });
    const absl::Status status = Sample();
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("partition 1, server " + peer_.address() + ": "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.message));
  }
}

// The nodes of negatives are looked up where their original ids are.
TEST_F(PeerExpandTest, LookupRepliesMustHaveTheRequestedNumberOfIds) {
  JobSpec spec;
  spec.seed_kind = SeedKind::kEdge;
  spec.seed_type = "item__likes__user";
  spec.fanouts = {0};
  spec.negatives = {NegativeMode::kBinary, 20};
  v1::SampleRequest request = testing::SampleRequestOf(spec, Columns(), 0);
  const uint32_t pair[] = {0, 0};
  request.set_explicit_ids(reinterpret_cast<const char*>(&pair[0]), 4);
  request.set_explicit_dst_ids(reinterpret_cast<const char*>(&pair[1]), 4);
  const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
      home_->address(), ::grpc::InsecureChannelCredentials(),
      ClientChannelArguments()));
  ASSERT_EQ(testing::CallSample(*stub, request).status, absl::OkStatus());
  for (const int more : {-1, 1}) {
    peer_.EditResolve([more](v1::ResolveReply& reply) {
      std::string& ids = *reply.mutable_ids();
      ids.resize(ids.size() + static_cast<size_t>(more) * sizeof(uint32_t));
    });
    const absl::Status status = testing::CallSample(*stub, request).status;
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the reply has "));
  }
}

// A server may answer for some of the nodes, and is asked for the others again.
TEST_F(PeerExpandTest, RepliesMayEndBeforeTheLastNode) {
  const int before = peer_.expands();
  peer_.EditExpand([](v1::ExpandReply& reply) {
    v1::ExpandReply::Picks& last = *reply.mutable_picks(reply.picks_size() - 1);
    if (last.counts().size() > sizeof(uint32_t)) DropLastNode(last);
  });
  EXPECT_EQ(Sample(), absl::OkStatus());
  EXPECT_EQ(peer_.expands() - before, 2);
}

}  // namespace
}  // namespace millrace
