// SPDX-License-Identifier: Apache-2.0
// Clients that take all they can get, while others are still served.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/remote_batch_source.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/grpc/tls/tls.h"
#include "common/net/host_port.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "common/sample/resolve_job.h"
#include "common/wire/error_info.h"
#include "server/rpc/frame_queue.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/manual_call.h"
#include "tests/support/socket_client.h"
#include "tests/support/test_ca.h"
#include "tests/support/test_directory.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CertificateSpec;
using testing::FleetHarness;
using testing::ManualCall;
using testing::SampleRequestOf;
using testing::SocketClient;
using testing::WideGraph;
using ChannelPtr = std::shared_ptr<::grpc::Channel>;

constexpr absl::Duration kPromptly = absl::Seconds(60);

ChannelPtr ChannelFrom(const char* host, const std::string& address) {
  ::grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  SocketClient socket(ParseHostPort(address)->port, host);
  EXPECT_TRUE(socket.connected());
  fcntl(socket.fd(), F_SETFL, O_NONBLOCK);
  return ::grpc::CreateCustomInsecureChannelFromFd(
      "server", std::move(socket).TakeFd(), arguments);
}

// A batch larger than what gRPC buffers.
v1::SampleRequest LargeSample() {
  JobSpec spec;
  spec.fanouts = {5, 5};
  spec.batch_size = 2000;
  return SampleRequestOf(spec, Columns(), 0);
}

testing::TestGraph Graph() { return WideGraph(3000, 5, 1 << 8); }

// Starts calls that read nothing, until one is refused or `count` are running.
std::vector<std::unique_ptr<ManualCall>> UnreadCalls(
    const std::vector<ChannelPtr>& channels, int count) {
  std::vector<std::unique_ptr<ManualCall>> calls;
  for (int i = 0; i < count; ++i) {
    calls.push_back(std::make_unique<ManualCall>(
        channels[static_cast<size_t>(i) % channels.size()], "Sample"));
    calls.back()->Send(LargeSample());
    if (!calls.back()->AwaitReply()) break;
  }
  return calls;
}

// Expects every call to be answered at once, without being refused first.
void ExpectServed(const ChannelPtr& channel, int calls) {
  const auto stub = v1::Sampler::NewStub(channel);
  for (int i = 0; i < calls; ++i) {
    const auto result = testing::CallSample(*stub, LargeSample(), kPromptly);
    ASSERT_TRUE(result.status.ok()) << "call " << i << ": " << result.status;
  }
}

ChannelPtr GoodChannel(const std::string& address) {
  return ::grpc::CreateCustomChannel(
      address, ::grpc::InsecureChannelCredentials(), ClientChannelArguments());
}

TEST(FairClientsTest, UnreadCallsDoNotCrowdOutOtherClients) {
  ServerOptions options;
  options.max_sample_calls = 16;
  FleetHarness fleet(Graph(), 1, options);
  const std::string address = fleet.server(0).address();
  const std::vector<ChannelPtr> attackers = {ChannelFrom("127.0.0.2", address),
                                             ChannelFrom("127.0.0.2", address)};
  auto unread = UnreadCalls(attackers, 16);
  ASSERT_EQ(unread.size(), 16u);
  ExpectServed(GoodChannel(address), 20);
}

TEST(FairClientsTest, UnreadCallsDoNotUseUpTheMemoryOfOtherClients) {
  // Measures what one call holds.
  ServerOptions options;
  FleetHarness alone(Graph(), 1, options);
  const auto one =
      UnreadCalls({ManualCall::Connect(alone.server(0).address())}, 1);
  ::grpc::ClientContext context;
  v1::DescribeReply reply;
  ASSERT_TRUE(alone.Stub(0)->Describe(&context, {}, &reply).ok());
  ASSERT_GT(reply.inflight_bytes(), 0u);

  options.max_inflight_bytes = 8 * reply.inflight_bytes();
  FleetHarness fleet(Graph(), 1, options);
  const std::string address = fleet.server(0).address();
  auto unread = UnreadCalls({ChannelFrom("127.0.0.2", address)}, 64);
  EXPECT_EQ(unread.back()->Await(kPromptly).error_code(),
            ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectServed(GoodChannel(address), 20);
}

double Metric(const SamplerServer& server, const std::string& name) {
  const std::string all = server.Metrics();
  const size_t at = all.find("\n" + name + " ");
  if (at != std::string::npos)
    return std::stod(all.substr(at + name.size() + 2));
  ADD_FAILURE() << "no " << name << " in\n" << all;
  return 0;
}

bool AwaitMetric(const SamplerServer& server, const std::string& name,
                 double value) {
  const SteadyTime deadline = SteadyNow() + kPromptly;
  while (Metric(server, name) != value) {
    if (SteadyNow() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// The server of one of two partitions, where the other server is gone. The
// first two calls that need the other partition block both threads.
class StuckServerTest : public ::testing::Test {
 protected:
  StuckServerTest() { fleet_.StopServer(1); }

  SamplerServer& server() { return fleet_.server(0); }

  // A call for a batch of `hops` hops, each of which needs both partitions.
  // `padding` makes its request larger.
  std::unique_ptr<ManualCall> Sample(const ChannelPtr& channel, int hops,
                                     size_t padding = 0) {
    JobSpec spec;
    spec.fanouts.assign(static_cast<size_t>(hops), 2);
    spec.batch_size = 4;
    auto call = std::make_unique<ManualCall>(channel, "Sample");
    v1::SampleRequest request = SampleRequestOf(spec, Columns(), 0);
    request.set_explicit_ids(std::string(padding, 0));
    call->Send(request);
    return call;
  }

  bool AwaitRunning(int calls) {
    return AwaitMetric(server(), "millrace_inflight_calls{method=\"Sample\"}",
                       calls);
  }

 private:
  static ServerOptions Options() {
    ServerOptions options;
    options.threads = 1;
    options.peer_wait = absl::Hours(1);
    options.max_sample_calls = 8;
    options.max_inflight_bytes = 100 << 20;
    return options;
  }

 protected:
  FleetHarness fleet_{WideGraph(100, 5, 4), 2, Options()};
};

// In order of arrival, the attacker's calls would come first and block the
// threads again.
TEST_F(StuckServerTest, AFreeThreadServesTheClientWithTheFewestRunningCalls) {
  const ChannelPtr attacker = ChannelFrom("127.0.0.2", server().address());
  std::vector<std::unique_ptr<ManualCall>> calls;
  for (int i = 1; i <= 7; ++i) {
    calls.push_back(Sample(attacker, 2));
    ASSERT_TRUE(AwaitRunning(i));
  }
  const auto good = Sample(GoodChannel(server().address()), 0);
  ASSERT_TRUE(AwaitRunning(8));
  for (size_t i = 0; i < 5; ++i) calls[i].reset();
  EXPECT_TRUE(good->AwaitReply());
}

// Queued calls that are ended or cancelled do not wait for the calls ahead of
// them; otherwise there would soon be twice as many as the limit.
TEST_F(StuckServerTest, QueuedCallsLeaveAtOnceWhenTheyEnd) {
  const ChannelPtr attacker = ChannelFrom("127.0.0.2", server().address());
  const ChannelPtr client = GoodChannel(server().address());
  std::vector<std::unique_ptr<ManualCall>> calls;
  for (int round = 0; round < 20; ++round) {
    while (calls.size() < 8) {
      calls.push_back(Sample(attacker, 2));
      ASSERT_TRUE(AwaitRunning(static_cast<int>(calls.size())));
    }
    auto good = Sample(client, 2);
    const absl::Status ended = FromGrpcStatus(calls.back()->Await(kPromptly));
    EXPECT_TRUE(absl::IsResourceExhausted(ended)) << ended;
    EXPECT_GT(ErrorInfoOf(ended).retry_after, absl::ZeroDuration());
    calls.pop_back();
    ASSERT_TRUE(AwaitRunning(8));
    EXPECT_EQ(good->Await(absl::ZeroDuration()).error_code(),
              ::grpc::StatusCode::UNKNOWN);
    good.reset();
    ASSERT_TRUE(AwaitRunning(7));
  }
  EXPECT_EQ(Metric(server(), "millrace_calls_ended_for_others_total"), 20);
}

// Requests reserve memory before they queue.
TEST_F(StuckServerTest, QueuedCallsDoNotUseUpTheMemoryOfOtherClients) {
  const ChannelPtr attacker = ChannelFrom("127.0.0.2", server().address());
  std::vector<std::unique_ptr<ManualCall>> calls;
  const auto held = [&] { return Metric(server(), "millrace_inflight_bytes"); };
  constexpr int kPadding = 4 << 20;
  // Whether a call with the padding is refused, given that `before` was held
  // when it was sent. The first two calls may still reserve a little more.
  const auto refused = [&](ManualCall& call, double before) {
    const SteadyTime deadline = SteadyNow() + kPromptly;
    while (held() < before + kPadding && SteadyNow() < deadline) {
      if (call.Await(absl::ZeroDuration()).error_code() ==
          ::grpc::StatusCode::RESOURCE_EXHAUSTED) {
        return true;
      }
    }
    return false;
  };
  for (int i = 0; i < 2; ++i) {
    calls.push_back(Sample(attacker, 2));
    ASSERT_TRUE(AwaitRunning(i + 1));
  }
  // Waits until they have started and hold what they need.
  const SteadyTime deadline = SteadyNow() + kPromptly;
  while (held() < 2.0 * kMaxHeldFrameBytes && SteadyNow() < deadline) {
  }
  double before = 0;
  do {
    ASSERT_LT(calls.size(), 8u);
    before = held();
    calls.push_back(Sample(attacker, 2, kPadding));
  } while (!refused(*calls.back(), before));
  calls.pop_back();
  const auto running = static_cast<int>(calls.size());
  ASSERT_TRUE(AwaitRunning(running));

  const auto good = Sample(GoodChannel(server().address()), 2, kPadding);
  EXPECT_EQ(calls.back()->Await(kPromptly).error_code(),
            ::grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(AwaitRunning(running));
  EXPECT_EQ(good->Await(absl::ZeroDuration()).error_code(),
            ::grpc::StatusCode::UNKNOWN);
}

// Fetches batches while some of the calls are ended for another client.
TEST_F(StuckServerTest, ClientsContinueAfterTheirCallsAreEnded) {
  constexpr uint32_t kBatches = 8;
  auto remote = *RemoteBatchSource::Connect({.servers = "@" + fleet_.list()});
  auto local = *LocalBatchSource::Create(fleet_.store(), 1);
  JobSpec spec;
  spec.fanouts = {2, 2};
  spec.batch_size = 4;
  const ResolvedJob job = *ResolveJob(spec, local->manifest());
  std::vector<std::unique_ptr<Notification>> done;
  for (uint32_t b = 0; b < kBatches; ++b) {
    // Even batches have their seeds in the first partition.
    const BatchRequest request = {.batch = 2 * b,
                                  .columns = DigestColumns(true, false)};
    const Sha256 expected =
        DigestBatch(*local->Make(job, request), local->manifest().schema);
    Notification& here = *done.emplace_back(std::make_unique<Notification>());
    remote->Fetch(job, request, [&, expected](absl::StatusOr<Batch> batch) {
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (batch.ok()) {
        EXPECT_EQ(DigestBatch(*batch, remote->manifest().schema), expected);
      }
      here.Notify();
    });
  }
  ASSERT_TRUE(AwaitRunning(kBatches));
  const ChannelPtr other = ChannelFrom("127.0.0.2", server().address());
  const std::vector<std::unique_ptr<ManualCall>> calls = [&] {
    std::vector<std::unique_ptr<ManualCall>> sent;
    for (int i = 0; i < 4; ++i) sent.push_back(Sample(other, 2));
    return sent;
  }();
  EXPECT_TRUE(
      AwaitMetric(server(), "millrace_calls_ended_for_others_total", 4));
  fleet_.StartServer(1);
  for (const auto& here : done) here->WaitForNotification();
  for (const auto& call : calls) EXPECT_TRUE(call->AwaitReply());
}

class FairCertificatesTest : public testing::DirectoryTest {
 protected:
  TlsOptions Identity(const std::string& name) {
    CertificateSpec spec;
    spec.name = name;
    spec.names = "DNS:localhost,IP:127.0.0.1";
    if (name != "server") spec.names = "DNS:" + name;
    const testing::CertificatePem pem = ca_.Issue(spec);
    TlsOptions options;
    options.ca = directory_ / "ca.pem";
    options.cert = directory_ / (name + ".pem");
    options.key = directory_ / (name + ".key");
    testing::ReplaceFile(options.ca, ca_.pem());
    testing::ReplaceFile(options.cert, pem.certificate);
    testing::ReplaceFile(options.key, pem.key);
    return options;
  }
  static ::grpc::SslCredentialsOptions Pem(const TlsOptions& files) {
    const auto read = [](const std::string& path) {
      return ReadFile(path, 1 << 20).value();
    };
    return {read(files.ca), read(files.key), read(files.cert)};
  }

  const testing::TestCa ca_{"our CA"};
};

// All clients have the same address.
TEST_F(FairCertificatesTest, ClientsAreToldApartByTheirCertificates) {
  ServerOptions options;
  options.max_sample_calls = 8;
  options.tls = Identity("server");
  options.clients.require_certificate = true;
  FleetHarness fleet(Graph(), 1, options);
  const std::string address = fleet.server(0).address();
  const auto attacker = ::grpc::SslCredentials(Pem(Identity("attacker")));
  const Connector good(*OpenClientTls(Identity("trainer")), address);
  auto unread = UnreadCalls({ManualCall::Connect(address, attacker)}, 8);
  ASSERT_EQ(unread.size(), 8u);
  ExpectServed(good.Connect(address), 10);
}

}  // namespace
}  // namespace millrace
