// SPDX-License-Identifier: Apache-2.0
// Clients that stall must not block a server, whatever they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/base/steady_time.h"
#include "server/load/request_limits.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/manual_call.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::FleetHarness;
using testing::ManualCall;
using testing::SampleRequestOf;
using testing::WideGraph;

constexpr absl::Duration kPatience = absl::Seconds(30);

// Returns a request with a reply of 4 MB.
v1::ExpandRequest LargeExpand() {
  v1::ExpandRequest request;
  request.set_replace(true);
  v1::ExpandRequest::Frontier& frontier = *request.add_frontiers();
  const uint32_t id = 0;
  frontier.set_ids(&id, sizeof id);
  frontier.set_fanout(1000000);
  return request;
}

v1::SampleRequest SampleOfTwoHops() {
  JobSpec spec;
  spec.fanouts = {5, 5};
  spec.batch_size = 2000;
  return SampleRequestOf(spec, Columns(), 0);
}

// The server has one place for a leaf call: waits until it is free again.
void ExpectLeafPlace(FleetHarness& fleet) {
  const auto stub = fleet.Stub(0);
  const SteadyTime deadline = SteadyNow() + kPatience;
  ::grpc::Status status;
  do {
    ::grpc::ClientContext context;
    v1::ResolveReply reply;
    status = stub->Resolve(&context, {}, &reply);
  } while (!status.ok() && SteadyNow() < deadline);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

ServerOptions Impatient() {
  ServerOptions options;
  options.request_timeout = absl::Seconds(1);
  options.client_timeout = absl::Seconds(1);
  return options;
}

TEST(SlowClientsTest, CallsWithoutARequestAreEnded) {
  FleetHarness fleet(WideGraph(30, 5, 4), 1, Impatient());
  std::vector<std::unique_ptr<ManualCall>> calls;
  for (const std::string method :
       {"Sample", "Gather", "Expand", "HasEdges", "Resolve", "Describe"}) {
    calls.push_back(
        std::make_unique<ManualCall>(fleet.server(0).address(), method));
  }
  for (const auto& call : calls) {
    EXPECT_EQ(call->Await(kPatience).error_code(),
              ::grpc::StatusCode::CANCELLED);
  }
}

// Calls that do not fit on a connection wait in its client.
std::vector<std::unique_ptr<ManualCall>> SilentCalls(FleetHarness& fleet,
                                                     const std::string& method,
                                                     int connections,
                                                     int each) {
  std::vector<std::unique_ptr<ManualCall>> calls;
  for (int c = 0; c < connections; ++c) {
    const auto channel = ManualCall::Connect(fleet.server(0).address());
    // An answered call proves that the connection exists.
    ManualCall first(channel, "Resolve");
    first.Send(v1::ResolveRequest());
    EXPECT_TRUE(first.AwaitReply());
    for (int i = 0; i < each; ++i) {
      calls.push_back(std::make_unique<ManualCall>(channel, method));
    }
  }
  return calls;
}

void ExpectServed(FleetHarness& fleet) {
  const auto stub = fleet.Stub(0);
  for (int i = 0; i < 20; ++i) {
    const absl::Status sampled =
        testing::CallSample(*stub, SampleOfTwoHops()).status;
    EXPECT_TRUE(sampled.ok()) << sampled;
    ::grpc::ClientContext context;
    testing::SetDeadline(context, kPatience);
    v1::DescribeReply reply;
    const ::grpc::Status described =
        stub->Describe(&context, v1::DescribeRequest(), &reply);
    EXPECT_TRUE(described.ok()) << described.error_message();
  }
}

// One connection makes such calls first, then several make more calls than the
// limit for that kind.
TEST(SlowClientsTest, MissingRequestsDoNotCrowdOutOthers) {
  FleetHarness fleet(WideGraph(3000, 5, 4), 1);
  const auto one = SilentCalls(fleet, "Sample", 1, 1100);
  ExpectServed(fleet);
  const auto samples = SilentCalls(fleet, "Sample", 4, 300);
  const auto describes = SilentCalls(fleet, "Describe", 17, 300);
  ExpectServed(fleet);
}

TEST(SlowClientsTest, ConnectionsHaveFarFewerCallsThanAServer) {
  ServerOptions options;
  EXPECT_LE(4 * kMaxCallsPerConnection, options.max_sample_calls);
  EXPECT_LE(16 * kMaxCallsPerConnection, options.max_leaf_calls);
  EXPECT_LE(64 * kMaxCallsPerConnection, options.max_reading_calls);
}

TEST(SlowClientsTest, CallsWithoutARequestAreLimitedInNumber) {
  ServerOptions options;
  options.max_reading_calls = 2;
  FleetHarness fleet(WideGraph(30, 5, 4), 1, options);
  ManualCall first(fleet.server(0).address(), "Expand");
  ManualCall second(fleet.server(0).address(), "Resolve");
  std::vector<std::unique_ptr<ManualCall>> more;
  const SteadyTime deadline = SteadyNow() + kPatience;
  ::grpc::Status status;
  do {  // until both are known
    more.push_back(
        std::make_unique<ManualCall>(fleet.server(0).address(), "HasEdges"));
    status = more.back()->Await(absl::Seconds(1));
  } while (status.error_code() == ::grpc::StatusCode::UNKNOWN &&
           SteadyNow() < deadline);
  EXPECT_EQ(status.error_code(), ::grpc::StatusCode::RESOURCE_EXHAUSTED);
}

// The client learns nothing before it continues, so the test asks the server.
TEST(SlowClientsTest, UnreadRepliesAreEnded) {
  ServerOptions options = Impatient();
  options.max_leaf_calls = 1;
  FleetHarness fleet(WideGraph(30, 5, 4), 1, options);
  ManualCall call(fleet.server(0).address(), "Expand");
  call.Send(LargeExpand());
  ASSERT_TRUE(call.AwaitReply());
  ExpectLeafPlace(fleet);
}

TEST(SlowClientsTest, UnreadStreamsAreEnded) {
  FleetHarness fleet(WideGraph(3000, 5, 1 << 10), 1, Impatient());
  ManualCall call(fleet.server(0).address(), "Sample");
  call.Send(SampleOfTwoHops());
  ASSERT_TRUE(call.AwaitReply());
  EXPECT_TRUE(fleet.server(0).Drain(kPatience));
}

TEST(SlowClientsTest, DeadlinesAreCapped) {
  ServerOptions options;
  options.max_deadline = absl::Seconds(1);
  options.max_leaf_calls = 1;
  FleetHarness fleet(WideGraph(3000, 5, 1 << 10), 1, options);
  ManualCall stream(fleet.server(0).address(), "Sample");
  ManualCall reply(fleet.server(0).address(), "Expand");
  stream.Send(SampleOfTwoHops());
  reply.Send(LargeExpand());
  ASSERT_TRUE(stream.AwaitReply());
  ASSERT_TRUE(reply.AwaitReply());
  ExpectLeafPlace(fleet);
  EXPECT_TRUE(fleet.server(0).Drain(kPatience));
}

}  // namespace
}  // namespace millrace
