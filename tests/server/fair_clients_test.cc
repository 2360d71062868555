// SPDX-License-Identifier: Apache-2.0
// Clients that take all they can get: others are served in their turn.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "common/grpc/tls.h"
#include "common/net/host_port.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/hand_call.h"
#include "tests/support/test_ca.h"
#include "tests/support/test_directory.h"
#include "tests/support/wide_graph.h"

namespace millrace {
namespace {

using testing::CertificateSpec;
using testing::FleetHarness;
using testing::HandCall;
using testing::SampleRequestOf;
using testing::WideGraph;
using ChannelPtr = std::shared_ptr<::grpc::Channel>;

constexpr absl::Duration kSoon = absl::Seconds(60);

// Connects to `address` from another address of this host.
int ConnectFrom(const char* host, const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  inet_pton(AF_INET, host, &from.sin_addr);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from), 0);
  const auto server = ParseHostPort(address);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(server->port));
  inet_pton(AF_INET, server->host.c_str(), &to.sin_addr);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

ChannelPtr ChannelFrom(const char* host, const std::string& address) {
  ::grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 64 << 10);
  return ::grpc::CreateCustomInsecureChannelFromFd(
      "server", ConnectFrom(host, address), arguments);
}

// A batch of more bytes than gRPC sends ahead.
v1::SampleRequest LargeSample() {
  JobSpec spec;
  spec.fanouts = {5, 5};
  spec.batch_size = 2000;
  return SampleRequestOf(spec, Columns(), 0);
}

testing::TestGraph Graph() { return WideGraph(3000, 5, 1 << 8); }

// Starts calls that read nothing, until one of them is refused or `count` run.
std::vector<std::unique_ptr<HandCall>> UnreadCalls(
    const std::vector<ChannelPtr>& channels, int count) {
  std::vector<std::unique_ptr<HandCall>> calls;
  for (int i = 0; i < count; ++i) {
    calls.push_back(std::make_unique<HandCall>(
        channels[static_cast<size_t>(i) % channels.size()], "Sample"));
    calls.back()->Send(LargeSample());
    if (!calls.back()->AwaitReply()) break;
  }
  return calls;
}

// Every call is answered at once: none is refused, to come back later.
void ExpectServed(const ChannelPtr& channel, int calls) {
  const auto stub = v1::Sampler::NewStub(channel);
  for (int i = 0; i < calls; ++i) {
    const auto result = testing::CallSample(*stub, LargeSample(), kSoon);
    ASSERT_TRUE(result.status.ok()) << "call " << i << ": " << result.status;
  }
}

ChannelPtr GoodChannel(const std::string& address) {
  return ::grpc::CreateCustomChannel(
      address, ::grpc::InsecureChannelCredentials(), ClientChannelArguments());
}

TEST(FairClientsTest, CallsThatAreNotReadTakeNoPlaceOfAnotherClient) {
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

TEST(FairClientsTest, CallsThatAreNotReadTakeNoMemoryOfAnotherClient) {
  // What one call holds.
  ServerOptions options;
  FleetHarness alone(Graph(), 1, options);
  const auto one =
      UnreadCalls({HandCall::Connect(alone.server(0).address())}, 1);
  ::grpc::ClientContext context;
  v1::DescribeReply reply;
  ASSERT_TRUE(alone.Stub(0)->Describe(&context, {}, &reply).ok());
  ASSERT_GT(reply.inflight_bytes(), 0u);

  options.max_inflight_bytes = 8 * reply.inflight_bytes();
  FleetHarness fleet(Graph(), 1, options);
  const std::string address = fleet.server(0).address();
  auto unread = UnreadCalls({ChannelFrom("127.0.0.2", address)}, 8);
  ExpectServed(GoodChannel(address), 20);
}

// One thread makes all batches: in the order in which they were asked for, the
// attacker's would all come first.
TEST(FairClientsTest, ThreadsAreSharedInTurns) {
  ServerOptions options;
  options.threads = 1;
  FleetHarness fleet(Graph(), 1, options);
  const std::string address = fleet.server(0).address();
  const ChannelPtr attacker = ChannelFrom("127.0.0.2", address);
  JobSpec spec;
  spec.fanouts = {-1, -1, -1};
  spec.batch_size = 3000;
  constexpr size_t kCalls = 100;
  std::vector<std::unique_ptr<HandCall>> calls;
  for (size_t i = 0; i < kCalls; ++i) {
    calls.push_back(std::make_unique<HandCall>(attacker, "Sample"));
    calls.back()->Send(SampleRequestOf(spec, Columns(), 0));
  }
  // Answered at once: so the requests before it are there.
  HandCall last(attacker, "Describe");
  last.Send(v1::DescribeRequest());
  ASSERT_TRUE(last.AwaitReply());
  ExpectServed(GoodChannel(address), 1);
  size_t answered = 0;
  for (const auto& call : calls) answered += call->HasReply() ? 1 : 0;
  EXPECT_LT(answered, kCalls / 2);
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

  const testing::TestCa ca_{"our CA"};
};

// All from one address.
TEST_F(FairCertificatesTest, ClientsAreToldApartByTheirCertificates) {
  ServerOptions options;
  options.max_sample_calls = 8;
  options.tls = Identity("server");
  options.clients.require_certificate = true;
  FleetHarness fleet(Graph(), 1, options);
  const std::string address = fleet.server(0).address();
  const auto attacker =
      ChannelCredentials(*OpenClientTls(Identity("attacker")), address);
  const auto good =
      ChannelCredentials(*OpenClientTls(Identity("trainer")), address);
  auto unread = UnreadCalls({HandCall::Connect(address, attacker)}, 8);
  ASSERT_EQ(unread.size(), 8u);
  ExpectServed(
      ::grpc::CreateCustomChannel(address, good, ClientChannelArguments()), 10);
}

}  // namespace
}  // namespace millrace
