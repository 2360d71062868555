// SPDX-License-Identifier: Apache-2.0
// Sends SIGTERM to a millrace-server process that has work to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "client/remote_batch_source.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/server_program.h"
#include "tests/support/store_builder.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CallSample;
using testing::Collect;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Program;
using testing::SampleRequestOf;
using testing::StreamResult;
using testing::WideGraph;

// A server of all partitions that is ready.
struct Replica {
  Replica(const std::filesystem::path& store, const std::string& name,
          const std::string& drain_timeout)
      : port_file(store.parent_path() / name),
        program({"--store", store.string(), "--partition", "all", "--listen",
                 "127.0.0.1:0", "--port-file", port_file.string(),
                 "--drain-timeout", drain_timeout}) {
    EXPECT_TRUE(program.AwaitLog("serving partitions")) << program.log();
    int port = 0;
    std::ifstream(port_file) >> port;
    address = "127.0.0.1:" + std::to_string(port);
  }

  std::unique_ptr<v1::Sampler::Stub> Stub() const {
    return v1::Sampler::NewStub(::grpc::CreateCustomChannel(
        address, ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments()));
  }

  // The rest of the log of a program that is ending.
  std::string RestOfLog() {
    program.AwaitLog("no such text");
    return program.log();
  }

  std::filesystem::path port_file;
  Program program;
  std::string address;
};

class ServerDrainTest : public ::testing::Test {
 protected:
  static std::filesystem::path BuildWide(int64_t nodes, int64_t dims,
                                         int parts) {
    const auto path = testing::TestDirectory("server_drain") / "store";
    EXPECT_TRUE(
        testing::WriteGraph(WideGraph(nodes, 5, dims), parts, path).ok());
    return path;
  }

  static JobSpec Job(int64_t batch_size) {
    JobSpec spec;
    spec.fanouts = {4, 3};
    spec.batch_size = batch_size;
    return spec;
  }

  // Waits until the server reports that it is draining.
  static void AwaitDraining(v1::Sampler::Stub& stub) {
    const SteadyTime deadline = SteadyNow() + absl::Seconds(30);
    v1::DescribeReply reply;
    while (!reply.draining() && SteadyNow() < deadline) {
      ::grpc::ClientContext context;
      ASSERT_TRUE(stub.Describe(&context, {}, &reply).ok());
    }
    EXPECT_TRUE(reply.draining());
  }
};

// A Sample call whose frames far exceed what gRPC buffers, so that it runs
// until they are read.
class HeldCall {
 public:
  explicit HeldCall(Replica& replica) : stub_(replica.Stub()) {
    JobSpec spec;
    spec.fanouts = {5};
    spec.batch_size = 2000;
    reader_ = stub_->Sample(&context_, SampleRequestOf(spec, Columns(), 0));
    reader_->WaitForInitialMetadata();
  }
  StreamResult Finish() { return Collect(*reader_); }
  v1::Sampler::Stub& stub() { return *stub_; }

 private:
  std::unique_ptr<v1::Sampler::Stub> stub_;
  ::grpc::ClientContext context_;
  std::unique_ptr<::grpc::ClientReader<v1::Frame>> reader_;
};

constexpr int64_t kHeldNodes = 2500;
constexpr int64_t kHeldDims = 16 << 10;

TEST_F(ServerDrainTest, RunningCallsAreFinishedAndNewOnesRefused) {
  Replica server(BuildWide(kHeldNodes, kHeldDims, 1), "port", "100s");
  HeldCall held(server);
  server.program.Signal(SIGTERM);
  AwaitDraining(held.stub());
  const absl::Status refused =
      CallSample(held.stub(), SampleRequestOf(Job(8), Columns(), 0)).status;
  EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("draining"));
  const StreamResult whole = held.Finish();
  EXPECT_TRUE(whole.status.ok()) << whole.status;
  EXPECT_EQ(whole.bytes.size(), whole.layout.total_bytes());
  EXPECT_GT(whole.bytes.size(), size_t{100} << 20);
  EXPECT_EQ(server.program.ExitStatus(), 0);
  EXPECT_THAT(server.RestOfLog(), Not(HasSubstr("calls were still running")));
}

TEST_F(ServerDrainTest, CallsThatExceedTheTimeoutAreEnded) {
  Replica server(BuildWide(kHeldNodes, kHeldDims, 1), "port", "300ms");
  HeldCall held(server);
  server.program.Signal(SIGTERM);
  EXPECT_EQ(server.program.ExitStatus(), 0);
  EXPECT_THAT(server.RestOfLog(), HasSubstr("calls were still running"));
  EXPECT_FALSE(held.Finish().status.ok());
}

TEST_F(ServerDrainTest, WaitsForRowsThatAreBeingSent) {
  const testing::TestGraph graph = WideGraph(kHeldNodes, 1, kHeldDims);
  testing::FleetHarness fleet(graph, 1);
  v1::GatherRequest request;
  std::vector<uint32_t> ids(kHeldNodes);
  std::iota(ids.begin(), ids.end(), 0u);
  request.set_ids(ids.data(), ids.size() * sizeof(uint32_t));
  const auto stub = fleet.Stub(0);
  ::grpc::ClientContext context;
  const auto reader = stub->Gather(&context, request);
  v1::Frame frame;
  ASSERT_TRUE(reader->Read(&frame));
  EXPECT_FALSE(fleet.server(0).Drain(absl::Milliseconds(100)));
  while (reader->Read(&frame)) {
  }
  EXPECT_TRUE(reader->Finish().ok());
}

// Fetches the batches of an epoch over and over on several threads, and
// compares their digests with those of batches made in this process.
class Load {
 public:
  Load(const std::filesystem::path& store, const std::string& servers,
       JobSpec spec) {
    const auto local =
        LocalBatchSource::Create(Store::Open(store).value(), 1).value();
    auto remote = RemoteBatchSource::Connect({.servers = servers});
    EXPECT_TRUE(remote.ok()) << remote.status();
    remote_ = *std::move(remote);
    auto job = ResolveJob(spec, local->manifest());
    EXPECT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
    for (uint32_t b = 0; b < kBatches; ++b) {
      auto batch = local->Make(job_, Request(b));
      EXPECT_TRUE(batch.ok()) << batch.status();
      expected_.push_back(DigestBatch(*batch, remote_->manifest().schema));
    }
    for (int i = 0; i < 4; ++i) {
      threads_.emplace_back([this] {
        while (!stop_) Check(next_++ % kBatches);
      });
    }
  }
  ~Load() { Stop(); }

  void Stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Waits until `count` more batches have arrived.
  void AwaitMore(int count) {
    const int until = done_ + count;
    for (int seen = done_; seen < until; seen = done_) done_.wait(seen);
  }

 private:
  static constexpr uint32_t kBatches = 25;

  static BatchRequest Request(uint32_t batch) {
    return {.batch = batch, .columns = DigestColumns(true, false)};
  }

  void Check(uint32_t b) {
    Notification here;
    remote_->Fetch(job_, Request(b), [&](absl::StatusOr<Batch> batch) {
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (batch.ok()) {
        EXPECT_EQ(DigestBatch(*batch, remote_->manifest().schema), expected_[b])
            << "batch " << b;
      }
      here.Notify();
    });
    here.WaitForNotification();
    ++done_;
    done_.notify_all();
  }

  std::unique_ptr<RemoteBatchSource> remote_;
  ResolvedJob job_;
  std::vector<Sha256> expected_;
  std::atomic<uint32_t> next_ = 0;
  std::atomic<int> done_ = 0;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

TEST_F(ServerDrainTest, ClientsWithAnotherReplicaNoticeNothing) {
  const std::filesystem::path store = BuildWide(400, 64, 2);
  Replica leaving(store, "leaving", "100s");
  Replica staying(store, "staying", "100s");
  Load load(store, leaving.address + "," + staying.address, Job(16));
  load.AwaitMore(50);
  leaving.program.Signal(SIGTERM);
  EXPECT_EQ(leaving.program.ExitStatus(), 0);
  EXPECT_THAT(leaving.RestOfLog(), Not(HasSubstr("calls were still running")));
  load.AwaitMore(50);
  load.Stop();
  staying.program.Signal(SIGTERM);
  EXPECT_EQ(staying.program.ExitStatus(), 0);
}

}  // namespace
}  // namespace millrace
