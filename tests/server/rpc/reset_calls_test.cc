// SPDX-License-Identifier: Apache-2.0
// A client that cancels its calls as fast as it makes them, which HTTP/2 lets
// it do without limit. Calls that the server has not finished must take no
// places of other clients. Memory that gRPC itself holds for them is out of our
// control.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/load/request_limits.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/raw_http2.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CallSample;
using testing::FleetHarness;
using testing::RawHttp2;
using testing::SampleRequestOf;
using testing::WideGraph;

constexpr char kSample[] = "/millrace.v1.Sampler/Sample";
v1::SampleRequest Request() {
  JobSpec spec;
  spec.fanouts = {2};
  spec.batch_size = 4;
  return SampleRequestOf(spec, Columns(), 0);
}

// Makes `calls` calls with their requests, 100 at a time, and then cancels
// them.
void ResetWholeCalls(RawHttp2& client, int calls) {
  const std::string request = Request().SerializeAsString();
  for (int made = 0; made < calls && !client.closed(); made += 100) {
    std::vector<uint32_t> streams;
    for (int i = 0; i < 100; ++i) {
      streams.push_back(client.Open(kSample));
      client.SendRequest(streams.back(), request);
    }
    client.AwaitRead();
    for (const uint32_t stream : streams) client.Reset(stream);
    client.AwaitRead();
  }
  EXPECT_FALSE(client.closed());
}

// Makes `calls` calls without their requests and cancels each at once.
void ResetUnsentCalls(RawHttp2& client, int calls) {
  for (int made = 1; made <= calls && !client.closed(); ++made) {
    client.Reset(client.Open(kSample));
    // So that no read of the server takes long enough to end the connections of
    // others, which send pings, in a slow build.
    if (made % 500 == 0) client.AwaitRead();
  }
  EXPECT_FALSE(client.closed());
}

TEST(ResetCallsTest, ConnectionsHaveFewerLiveCallsThanAServer) {
  ServerOptions options;
  EXPECT_LE(2 * kMaxLiveCallsPerConnection, options.max_sample_calls);
  EXPECT_LE(8 * kMaxLiveCallsPerConnection, options.max_leaf_calls);
  EXPECT_LE(32 * kMaxLiveCallsPerConnection, options.max_reading_calls);
}

// Cancelled calls stay in the server until it gets to them, which here takes
// until the owner of the other partition is back.
TEST(ResetCallsTest, RunningCallsDoNotCrowdOutOthers) {
  ServerOptions options;
  options.threads = 1;
  options.peer_wait = absl::Hours(1);
  FleetHarness fleet(WideGraph(100, 5, 4), 2, options);
  const auto stub = fleet.Stub(0);
  ASSERT_TRUE(CallSample(*stub, Request()).status.ok());
  fleet.StopServer(1);

  std::vector<std::thread> waiting;
  const auto sample = [&] {
    const absl::Status status =
        CallSample(*stub, Request(), absl::Minutes(5)).status;
    EXPECT_TRUE(status.ok()) << status;
  };
  // There are as many calls as the server has sampling threads.
  for (int i = 0; i < 2; ++i) waiting.emplace_back(sample);
  RawHttp2 attacker(fleet.server(0).address());
  ResetWholeCalls(attacker, 5000);
  waiting.emplace_back(sample);
  // It is admitted or refused before the others are done.
  v1::DescribeReply reply;
  ::grpc::ClientContext context;
  testing::SetDeadline(context, absl::Minutes(1));
  EXPECT_TRUE(stub->Describe(&context, {}, &reply).ok());
  fleet.StartServer(1);
  for (std::thread& thread : waiting) thread.join();
}

TEST(ResetCallsTest, UnsentRequestsDoNotCrowdOutOthers) {
  ServerOptions options;
  options.max_reading_calls = kMaxLiveCallsPerConnection + 10;
  FleetHarness fleet(WideGraph(100, 5, 4), 1, options);
  const auto stub = fleet.Stub(0);
  std::atomic<bool> stop = false;
  std::thread attacker([&] {
    RawHttp2 client(fleet.server(0).address());
    ResetUnsentCalls(client, 10'000);
    stop = true;
  });
  // The server may be slow to notice that these calls are done too, so there
  // are fewer than it lets one connection have.
  int answered = 0;
  while (!stop && answered < kMaxLiveCallsPerConnection / 2) {
    const absl::Status status =
        CallSample(*stub, Request(), absl::Minutes(5)).status;
    EXPECT_TRUE(status.ok()) << status;
    ++answered;
  }
  attacker.join();
  EXPECT_GT(answered, 0);
}

}  // namespace
}  // namespace millrace
