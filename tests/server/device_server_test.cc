// SPDX-License-Identifier: Apache-2.0
// Servers whose store is sampled by something else than the CPU: stand-ins for
// devices, which need none.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/sample/draw/draw.h"
#include "common/sample/draw/sampler.h"
#include "common/sample/gather_columns.h"
#include "common/sample/local/mapped_neighbor_source.h"
#include "common/tier/load_store.h"
#include "common/wire/error_info.h"
#include "server/server.h"
#include "server/status_pages.h"
#include "tests/server/call_by_name.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/socket_client.h"
#include "tests/support/test_store.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using testing::CallSample;
using ::testing::EndsWith;
using testing::FleetHarness;
using ::testing::HasSubstr;
using testing::Health;
using ::testing::StartsWith;

constexpr uint64_t kBatchBytes = 1 << 20;

// What a device is asked for, and what it answers.
struct Device {
  absl::Status status;
  bool leaves_to_cpu = false;
  std::atomic<int> batches = 0, draws = 0;
  absl::Status rows_status;
  std::atomic<uint64_t> rows = 0;  // that it has read
};

// Make on the CPU what a device would.

class Sampler final : public TopologySampler {
 public:
  explicit Sampler(Device& device) : device_(device) {}
  absl::StatusOr<std::optional<Batch>> Sample(const Store& store,
                                              const ResolvedJob& job,
                                              const TopologyRequest& request,
                                              const ResolvedSeeds& seeds,
                                              const Reserve& reserve) override {
    ++device_.batches;
    if (!device_.status.ok()) return device_.status;
    if (device_.leaves_to_cpu) return std::nullopt;
    const absl::Status reserved = reserve(kBatchBytes);
    if (!reserved.ok()) return reserved;
    MappedNeighborSource source(store);
    auto batch = SampleTopology(job, store.manifest(), request, seeds, source);
    if (!batch.ok()) return batch.status();
    return *std::move(batch);
  }

 private:
  Device& device_;
};

class Drawer final : public NeighborDrawer {
 public:
  explicit Drawer(Device& device) : device_(device) {}
  absl::StatusOr<bool> Draw(const Store& store, int part,
                            const DrawContext& context,
                            const Frontier& frontier, Picks& picks) override {
    ++device_.draws;
    if (!device_.status.ok()) return device_.status;
    if (device_.leaves_to_cpu) return false;
    const absl::Status status =
        DrawNeighbors(store, part, context, frontier, picks);
    if (!status.ok()) return status;
    return true;
  }

 private:
  Device& device_;
};

class Rows final : public FeatureRows {
 public:
  Rows(Device& device, std::shared_ptr<const Store> store)
      : device_(device), store_(std::move(store)) {}
  absl::StatusOr<Array> GatherNodes(TypeIndex type,
                                    std::span<const uint64_t> ids,
                                    ArrayMemory* memory) override {
    if (!device_.rows_status.ok()) return device_.rows_status;
    EXPECT_EQ(memory, nullptr);
    device_.rows += ids.size();
    return GatherArray(*store_, type, NodeColumn::kFeature, ids);
  }
  absl::StatusOr<Array> GatherEdges(RelationIndex, std::span<const uint32_t>,
                                    std::span<const uint64_t>,
                                    ArrayMemory*) override {
    return absl::InternalError("the graph has no edge features");
  }
  FeatureRowCounts counts() const override { return {.gpu = device_.rows}; }

 private:
  Device& device_;
  const std::shared_ptr<const Store> store_;
};

class DeviceServerTest : public ::testing::Test {
 protected:
  // Serves the partitions `mapped` of two; the others have servers without a
  // device.
  void Start(std::vector<int> mapped, ServerOptions options = {}) {
    const bool all = mapped.empty();
    options.peers = "@" + fleet_.list();
    LoadedStore loaded{
        .store =
            Store::Open(fleet_.store()->path(), std::move(mapped)).value()};
    if (all) loaded.sampler = std::make_unique<Sampler>(device_);
    loaded.drawer = std::make_unique<Drawer>(device_);
    loaded.features = std::make_shared<Rows>(device_, loaded.store);
    server_ =
        SamplerServer::Start(std::move(loaded), std::move(options)).value();
  }

  // Calls the server, or another that has no device.
  testing::StreamResult Sample() const { return SampleFrom(*server_); }
  testing::StreamResult SampleWithoutDevice() {
    return SampleFrom(fleet_.server(0));
  }

  void ExpectSame() {
    const testing::StreamResult expected = SampleWithoutDevice();
    const testing::StreamResult result = Sample();
    ASSERT_TRUE(expected.status.ok()) << expected.status;
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.bytes, expected.bytes);
  }
  void ExpectHops(int device, int host) const {
    const std::string metrics = server_->Metrics();
    EXPECT_THAT(metrics, HasSubstr("millrace_hops_total{place=\"gpu\"} " +
                                   std::to_string(device) + "\n"));
    EXPECT_THAT(metrics, HasSubstr("millrace_hops_total{place=\"cpu\"} " +
                                   std::to_string(host) + "\n"));
  }

  // The server's metrics.
  std::string Metrics() const { return server_->Metrics(); }
  testing::StreamResult Gather() const {
    v1::GatherRequest request;
    request.set_column(v1::NODE_COLUMN_FEATURE);
    constexpr uint32_t kIds[] = {0, 1, 2, 3};
    request.set_ids(kIds, sizeof kIds);
    return testing::CallGather(*StubOf(*server_), request);
  }

  bool HasFailedDevice() const { return server_->HasFailedDevice(); }
  // Why the server says that it has to be restarted.
  std::string FailureOf() const {
    v1::DescribeReply reply;
    ::grpc::ClientContext context;
    EXPECT_TRUE(StubOf(*server_)->Describe(&context, {}, &reply).ok());
    return reply.failure();
  }
  const std::shared_ptr<SamplerServer>& server() const { return server_; }
  Health HealthOf(const std::string& service) const {
    return testing::CheckHealth(server_->address(), service);
  }

  Device device_;

 private:
  static testing::StreamResult SampleFrom(const SamplerServer& server) {
    JobSpec spec;
    spec.fanouts = {3, 2};
    spec.batch_size = 16;
    return CallSample(*StubOf(server),
                      testing::SampleRequestOf(spec, Columns(), 0));
  }
  static std::unique_ptr<v1::Sampler::Stub> StubOf(
      const SamplerServer& server) {
    return v1::Sampler::NewStub(::grpc::CreateCustomChannel(
        server.address(), ::grpc::InsecureChannelCredentials(),
        ClientChannelArguments()));
  }

  FleetHarness fleet_{testing::WideGraph(300, 5, 8), 2};
  std::shared_ptr<SamplerServer> server_;
};

TEST_F(DeviceServerTest, MakesWholeBatchesOfAWholeGraph) {
  Start({});
  ExpectSame();
  EXPECT_EQ(device_.batches, 1);
  EXPECT_EQ(device_.draws, 0);
  ExpectHops(2, 0);
}

TEST_F(DeviceServerTest, DrawsItsShareOfOtherGraphs) {
  Start({0});
  ExpectSame();
  EXPECT_EQ(device_.draws, 2) << "one for each hop";
  ExpectHops(2, 0);
}

TEST_F(DeviceServerTest, TheCpuDoesWhatIsLeftToIt) {
  device_.leaves_to_cpu = true;
  Start({});
  ExpectSame();
  EXPECT_EQ(device_.batches, 1);
  EXPECT_EQ(device_.draws, 4) << "two partitions in each of two hops";
  ExpectHops(0, 4);
}

TEST_F(DeviceServerTest, SendsClientsOfAFailedDeviceElsewhere) {
  for (const bool all : {true, false}) {
    Start(all ? std::vector<int>() : std::vector<int>{0});
    EXPECT_FALSE(HasFailedDevice());
    EXPECT_EQ(FailureOf(), "");
    EXPECT_EQ(HealthOf(""), Health::kServing);
    EXPECT_THAT(Metrics(), HasSubstr("\nmillrace_ready 1\n"));
    device_.status = absl::UnavailableError("CUDA device 0 has failed");
    const absl::Status status = Sample().status;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_TRUE(IsRetryable(status));
    EXPECT_TRUE(HasFailedDevice());
    EXPECT_EQ(HealthOf(""), Health::kNotServing);
    EXPECT_EQ(HealthOf("partition/0"), Health::kNotServing);
    EXPECT_EQ(FailureOf(), "a GPU has failed");
    EXPECT_THAT(Metrics(), HasSubstr("\nmillrace_ready 0\n"));
    device_.status = absl::OkStatus();
    ExpectSame();
  }
}

TEST_F(DeviceServerTest, PagesSayThatADeviceHasFailed) {
  const auto pages = StatusPages::Start({"127.0.0.1", 0}).value();
  const auto get = [&](const std::string& path) {
    return testing::HttpGet(ParseHostPort(pages->address())->port, path);
  };
  Start({});
  pages->SetServer(server());
  for (const char* path : {"/healthz", "/readyz"}) {
    EXPECT_THAT(get(path), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
  device_.status = absl::UnavailableError("CUDA device 0 has failed");
  EXPECT_FALSE(Sample().status.ok());
  for (const char* path : {"/healthz", "/readyz"}) {
    EXPECT_THAT(get(path),
                AllOf(StartsWith("HTTP/1.1 503 "),
                      EndsWith("a GPU has failed: restart this server\n")));
  }
  EXPECT_THAT(get("/status.json"),
              AllOf(HasSubstr("\"state\":\"failed\""),
                    HasSubstr("\"failure\":\"a GPU has failed\"")));
  EXPECT_THAT(get("/metrics"), AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                                     HasSubstr("\nmillrace_ready 0\n")));
}

TEST_F(DeviceServerTest, SendsClientsElsewhereIfItCannotReadRows) {
  for (const bool sample : {true, false}) {
    Start({});
    const auto call = [&] { return sample ? Sample() : Gather(); };
    EXPECT_TRUE(call().status.ok());
    EXPECT_GT(device_.rows, 0);
    EXPECT_THAT(Metrics(),
                HasSubstr("millrace_feature_rows_total{place=\"gpu\"} " +
                          std::to_string(device_.rows) + "\n"));
    EXPECT_FALSE(HasFailedDevice());
    device_.rows_status = absl::UnavailableError("CUDA device 0 has failed");
    const absl::Status status = call().status;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_TRUE(IsRetryable(status));
    EXPECT_TRUE(HasFailedDevice());
    device_.rows_status = absl::OkStatus();
  }
}

TEST_F(DeviceServerTest, AsksClientsToRetryWhenMemoryIsShort) {
  Start({});
  device_.status = absl::ResourceExhaustedError("cannot pin 4096 bytes");
  const absl::Status status = Sample().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorInfoOf(status).retry_after, kRetryAfter);
}

TEST_F(DeviceServerTest, BatchesOfADeviceCountTowardsTheMemoryLimit) {
  ServerOptions options;
  options.max_inflight_bytes = kBatchBytes;
  Start({}, options);
  const absl::Status status = Sample().status;
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(" needs "));
}

}  // namespace
}  // namespace millrace
