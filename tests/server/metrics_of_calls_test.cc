// SPDX-License-Identifier: Apache-2.0
// Compares the metrics of servers with what a client has done.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/base/mutex.h"
#include "common/base/process_usage.h"
#include "common/base/steady_time.h"
#include "common/graph/manifest.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/raw_http2.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CallGather;
using testing::CallSample;
using testing::Eventually;
using testing::FleetHarness;
using ::testing::HasSubstr;
using testing::SampleRequestOf;
using testing::SmallGraph;

// A value from a server's metrics, named with its labels; NaN if it is missing.
double ValueOf(const SamplerServer& server, const std::string& name) {
  const std::string all = server.Metrics();
  const size_t at = all.find("\nmillrace_" + name + " ");
  if (at == std::string::npos) return std::nan("");
  return std::stod(all.substr(all.find(' ', at + name.size() + 10)));
}

bool AwaitValue(const SamplerServer& server, const std::string& name,
                double value) {
  return Eventually([&] { return ValueOf(server, name) == value; });
}

std::string OfMethod(const std::string& name, const std::string& method) {
  return name + "{method=\"" + method + "\"}";
}

// Half of the neighbours of partition 0 are elsewhere.
v1::SampleRequest Request(int home) {
  JobSpec spec;
  spec.fanouts = {-1, -1};
  spec.batch_size = 4;
  return SampleRequestOf(spec, Columns(), home);
}

class MetricsOfCallsTest : public ::testing::Test {
 protected:
  FleetHarness fleet_{SmallGraph(), 2};
};

TEST_F(MetricsOfCallsTest, CountCallsTheirTimesAndBytes) {
  const v1::SampleRequest request = Request(0);
  v1::GatherRequest gather;
  gather.set_partition(0);
  gather.set_column(v1::NODE_COLUMN_FEATURE);
  const SteadyTime start = SteadyNow();
  size_t payload = 0;
  for (int i = 0; i < 5; ++i) {
    const testing::StreamResult batch = CallSample(*fleet_.Stub(0), request);
    EXPECT_EQ(batch.status, absl::OkStatus());
    payload += batch.bytes.size();
  }
  const double sampling = absl::ToDoubleSeconds(SteadyNow() - start);
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = CallGather(*fleet_.Stub(0), gather).status;
    EXPECT_EQ(status, absl::OkStatus());
  }
  const SamplerServer& home = fleet_.server(0);
  EXPECT_TRUE(
      AwaitValue(home, "calls_total{code=\"OK\",method=\"Sample\"}", 5));
  EXPECT_TRUE(
      AwaitValue(home, "calls_total{code=\"OK\",method=\"Gather\"}", 3));
  EXPECT_EQ(ValueOf(home, OfMethod("call_seconds_count", "Sample")), 5);
  EXPECT_EQ(ValueOf(home, OfMethod("call_seconds_count", "Gather")), 3);
  // One after another, and each at least as long as its hops.
  const double seconds = ValueOf(home, OfMethod("call_seconds_sum", "Sample"));
  EXPECT_LE(seconds, sampling + 0.05);
  EXPECT_GE(seconds, ValueOf(home, "sample_seconds_sum"));
  EXPECT_EQ(ValueOf(home, OfMethod("received_bytes_total", "Sample")),
            5 * static_cast<double>(request.ByteSizeLong()));
  EXPECT_EQ(ValueOf(home, OfMethod("received_bytes_total", "Gather")),
            3 * static_cast<double>(gather.ByteSizeLong()));
  // Each frame has a header besides.
  const double sent = ValueOf(home, OfMethod("sent_bytes_total", "Sample"));
  EXPECT_GT(sent, static_cast<double>(payload));
  EXPECT_LT(sent, static_cast<double>(payload) + 5 * 1000);
  EXPECT_GT(ValueOf(home, OfMethod("sent_bytes_total", "Gather")), 0);
  EXPECT_TRUE(AwaitValue(home, OfMethod("inflight_calls", "Sample"), 0));
}

TEST_F(MetricsOfCallsTest, PeerCallsAreTheOthersCalls) {
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(CallSample(*fleet_.Stub(0), Request(0)).status, absl::OkStatus());
  }
  const SamplerServer& home = fleet_.server(0);
  const double calls = ValueOf(home, "peer_calls_total");
  EXPECT_GT(calls, 0);
  EXPECT_TRUE(
      AwaitValue(home, OfMethod("peer_call_seconds_count", "Expand"), calls));
  EXPECT_TRUE(AwaitValue(fleet_.server(1),
                         OfMethod("call_seconds_count", "Expand"),
                         calls + ValueOf(home, "hedged_peer_calls_total")));
  // Batches wait for nothing else.
  EXPECT_LE(ValueOf(home, "peer_wait_seconds_sum"),
            ValueOf(home, OfMethod("peer_call_seconds_sum", "Expand")) + 0.05);
  EXPECT_GT(ValueOf(fleet_.server(1), "leaf_busy_seconds_total"), 0);
  const std::string sent = OfMethod("sent_bytes_total", "Expand");
  EXPECT_EQ(ValueOf(home, sent), 0);
  EXPECT_GT(ValueOf(fleet_.server(1), sent), calls);
}

// The first hop needs partitions 1 and 2. The former fails, so the call to the
// latter, which does not answer, is cancelled.
TEST(PeerCallSecondsTest, LeaveOutCallsThatWereCancelled) {
  FleetHarness fleet(testing::WideGraph(300, 5, 8), 3);
  Notification end;
  testing::ScriptedSampler failing(fleet.Stub(1), {});
  testing::ScriptedSampler silent(fleet.Stub(2), {});
  failing.OnExpand(
      [] { return ::grpc::Status(::grpc::StatusCode::INTERNAL, "broken"); });
  silent.OnExpand([&end] {
    end.WaitForNotification();
    return ::grpc::Status::OK;
  });
  ServerOptions options;
  options.peers = failing.address() + "," + silent.address();
  const auto home =
      SamplerServer::Start(Store::Open(fleet.store()->path(), {0}).value(),
                           options)
          .value();
  const auto stub = v1::Sampler::NewStub(::grpc::CreateCustomChannel(
      home->address(), ::grpc::InsecureChannelCredentials(),
      ClientChannelArguments()));
  JobSpec spec;
  spec.fanouts = {-1, -1};
  spec.batch_size = 64;
  const absl::Status status =
      CallSample(*stub, SampleRequestOf(spec, Columns(), 0)).status;
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_TRUE(
      AwaitValue(*home, "calls_total{code=\"INTERNAL\",method=\"Sample\"}", 1));
  EXPECT_EQ(ValueOf(*home, "peer_calls_total"), 2);
  EXPECT_EQ(ValueOf(*home, OfMethod("peer_call_seconds_count", "Expand")), 1);
  end.Notify();
}

TEST_F(MetricsOfCallsTest, RefusalsHaveReasons) {
  const SamplerServer& server = fleet_.server(0);
  const auto refused = [&](const std::string& reason) {
    return "refused_calls_total{method=\"Sample\",reason=\"" + reason + "\"}";
  };
  EXPECT_EQ(ValueOf(server, refused("partition")), 0);
  CallSample(*fleet_.Stub(0), Request(1));
  CallSample(*fleet_.Stub(0), Request(1));
  v1::SampleRequest other = Request(0);
  other.set_fingerprint("another one");
  CallSample(*fleet_.Stub(0), other);
  // Refused for its own fault.
  v1::SampleRequest bad = Request(0);
  bad.mutable_job()->set_batch_size(0);
  CallSample(*fleet_.Stub(0), bad);
  EXPECT_TRUE(fleet_.server(0).Drain(absl::Seconds(30)));
  CallSample(*fleet_.Stub(0), Request(0));
  EXPECT_TRUE(AwaitValue(server, refused("partition"), 2));
  EXPECT_TRUE(AwaitValue(server, refused("store"), 1));
  EXPECT_TRUE(AwaitValue(server, refused("draining"), 1));
  EXPECT_TRUE(AwaitValue(server, OfMethod("call_seconds_count", "Sample"), 5));
}

TEST_F(MetricsOfCallsTest, ShowTheStoreThePeersAndTheLimits) {
  const SamplerServer& server = fleet_.server(1);
  const Manifest& manifest = fleet_.store()->manifest();
  EXPECT_THAT(
      server.Metrics(),
      HasSubstr("\nmillrace_store_info{store_uuid=\"" + manifest.uuid +
                "\",fingerprint=\"" + manifest.fingerprint +
                "\",dataset_fingerprint=\"" + manifest.dataset_fingerprint +
                "\",partitions=\"1\",parts=\"2\"} 1\n"));
  EXPECT_EQ(ValueOf(server, "partition_served{partition=\"1\"}"), 1);
  EXPECT_EQ(ValueOf(server, "ready"), 1);
  EXPECT_TRUE(AwaitValue(server, "peers{state=\"ready\"}", 2));
  EXPECT_EQ(ValueOf(server, "peers{state=\"unreachable\"}"), 0);
  EXPECT_EQ(ValueOf(server, OfMethod("max_calls", "Sample")), 1024);
  EXPECT_EQ(ValueOf(server, OfMethod("max_calls", "HasEdges")), 4096);
  // The files themselves say how large they are.
  double features = 0, graph = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           fleet_.store()->path() / "part-00001")) {
    if (!entry.is_regular_file()) continue;
    const bool feature = entry.path().filename() == "feature.npy";
    (feature ? features : graph) += static_cast<double>(entry.file_size());
  }
  const std::string name = "store_memory_bytes{content=\"";
  EXPECT_EQ(ValueOf(server, name + "features\",memory=\"mmap\"}"), features);
  EXPECT_EQ(ValueOf(server, name + "graph\",memory=\"mmap\"}"), graph);
}

TEST_F(MetricsOfCallsTest, DescribeTellsTheLoad) {
  constexpr int kCalls = 40;
  const SteadyTime start = SteadyNow();
  absl::Duration longest;
  for (int i = 0; i < kCalls; ++i) {
    const SteadyTime begin = SteadyNow();
    EXPECT_EQ(CallSample(*fleet_.Stub(0), Request(0)).status, absl::OkStatus());
    longest = std::max(longest, SteadyNow() - begin);
  }
  EXPECT_TRUE(AwaitValue(fleet_.server(0),
                         OfMethod("call_seconds_count", "Sample"), kCalls));
  v1::DescribeReply reply;
  ::grpc::ClientContext context;
  ASSERT_TRUE(fleet_.Stub(0)->Describe(&context, {}, &reply).ok());
  const v1::DescribeReply::Load& load = reply.load();
  // Since the server's start.
  EXPECT_NEAR(load.batches_per_second() * reply.uptime_seconds(), kCalls,
              0.2 * kCalls);
  EXPECT_GT(load.sample_p50_seconds(), 0);
  EXPECT_LE(load.sample_p50_seconds(), load.sample_p99_seconds());
  EXPECT_LE(load.sample_p99_seconds(), absl::ToDoubleSeconds(longest) + 0.05);
  EXPECT_GT(load.sampling_busy_ratio(), 0);
  EXPECT_LT(load.sampling_busy_ratio(), 1);
  EXPECT_EQ(load.sample_calls(), 0u);
  EXPECT_NEAR(static_cast<double>(load.resident_bytes()),
              static_cast<double>(ReadProcessState().resident_bytes), 64 << 20);
  EXPECT_LE(start, SteadyNow());
  EXPECT_FALSE(reply.leaf_only());
  EXPECT_EQ(reply.failure(), "");
}

// The server starts to drain while it reads a request, which takes the only
// place there is for that.
TEST(ReceivedBytesTest, CountRefusedRequestsToo) {
  ServerOptions options;
  options.max_reading_calls = 1;
  FleetHarness fleet(SmallGraph(), 1, options);
  const SamplerServer& server = fleet.server(0);
  testing::RawHttp2 client(server.address());
  const uint32_t stream = client.Open("/millrace.v1.Sampler/Sample");
  v1::GatherRequest gather;
  gather.set_column(v1::NODE_COLUMN_FEATURE);
  EXPECT_TRUE(Eventually([&] {
    const absl::Status status = CallGather(*fleet.Stub(0), gather).status;
    return absl::IsResourceExhausted(status);
  }));
  EXPECT_TRUE(fleet.server(0).Drain(absl::Seconds(30)));
  const std::string received = OfMethod("received_bytes_total", "Sample");
  EXPECT_EQ(ValueOf(server, received), 0);
  const std::string request = Request(0).SerializeAsString();
  client.SendRequest(stream, request);
  EXPECT_TRUE(AwaitValue(server,
                         "refused_calls_total{method=\"Sample\",reason="
                         "\"draining\"}",
                         1));
  EXPECT_EQ(ValueOf(server, received), static_cast<double>(request.size()));
}

// A batch that waits for an absent owner keeps a thread busy.
TEST(BusyThreadsTest, WaitingForPeersCountsAsBusy) {
  ServerOptions options;
  options.threads = 1;
  options.peer_wait = absl::Milliseconds(300);
  FleetHarness fleet(SmallGraph(), 2, options);
  fleet.StopServer(1);
  const SamplerServer& home = fleet.server(0);
  EXPECT_TRUE(AwaitValue(home, "peers{state=\"unreachable\"}", 1));
  EXPECT_EQ(ValueOf(home, "sampling_threads"), 2);
  const double before = ValueOf(home, "sampling_busy_seconds_total");
  const SteadyTime start = SteadyNow();
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(CallSample(*fleet.Stub(0), Request(0)).status.ok());
  }
  const double wall = absl::ToDoubleSeconds(SteadyNow() - start);
  const double busy = ValueOf(home, "sampling_busy_seconds_total") - before;
  EXPECT_GE(busy, 2 * 0.29);
  EXPECT_LE(busy, wall + 0.05);
}

// A call that waits for an absent owner until it is cancelled.
TEST(CallsInFlightTest, CountWhileTheyRun) {
  ServerOptions options;
  options.threads = 1;
  options.peer_wait = absl::Minutes(5);
  FleetHarness fleet(SmallGraph(), 2, options);
  fleet.StopServer(1);
  const SamplerServer& home = fleet.server(0);
  const auto stub = fleet.Stub(0);
  ::grpc::ClientContext context;
  const auto reader = stub->Sample(&context, Request(0));
  EXPECT_TRUE(AwaitValue(home, OfMethod("inflight_calls", "Sample"), 1));
  EXPECT_EQ(ValueOf(home, OfMethod("clients", "Sample")), 1);
  EXPECT_EQ(ValueOf(home, OfMethod("clients", "Expand")), 0);
  EXPECT_EQ(ValueOf(home, OfMethod("call_seconds_count", "Sample")), 0);
  v1::DescribeReply reply;
  ::grpc::ClientContext describe;
  ASSERT_TRUE(stub->Describe(&describe, {}, &reply).ok());
  EXPECT_EQ(reply.load().sample_calls(), 1u);
  EXPECT_EQ(reply.load().batches_per_second(), 0);
  context.TryCancel();
  EXPECT_TRUE(AwaitValue(home, OfMethod("inflight_calls", "Sample"), 0));
  EXPECT_TRUE(AwaitValue(home, OfMethod("call_seconds_count", "Sample"), 1));
  EXPECT_EQ(ValueOf(home, OfMethod("clients", "Sample")), 0);
}

}  // namespace
}  // namespace millrace
