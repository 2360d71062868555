// SPDX-License-Identifier: Apache-2.0
// Connections that harm a server: silent ones, too many, or more than it has
// file descriptors for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/base/steady_time.h"
#include "common/file/file_limit.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/raw_http2.h"
#include "tests/support/server_program.h"
#include "tests/support/socket_client.h"
#include "tests/support/test_ca.h"

namespace millrace {
namespace {

using testing::Eventually;
using testing::FleetHarness;
using testing::RawHttp2;
using testing::SocketClient;

constexpr absl::Duration kSoon = absl::Seconds(60);

// The address of hostile connections; others come from 127.0.0.1.
constexpr char kAttacker[] = "127.0.0.2";

// The first bytes of HTTP/2 and of TLS.
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr char kHello[] = "\x16\x03\x01\x02";

// A stub with its own connection.
std::unique_ptr<v1::Sampler::Stub> StubOf(const std::string& address) {
  return v1::Sampler::NewStub(::grpc::CreateCustomChannel(
      address, ::grpc::InsecureChannelCredentials(), ClientChannelArguments()));
}

absl::Status Ask(v1::Sampler::Stub& stub) {
  ::grpc::ClientContext context;
  testing::SetDeadline(context, kSoon);
  v1::DescribeReply reply;
  return FromGrpcStatus(stub.Describe(&context, {}, &reply));
}

// A value from a server's metrics; -1 if it is missing.
double ValueOf(const std::string& metrics, const std::string& name) {
  const size_t at = metrics.find("\n" + name + " ");
  if (at == std::string::npos) return -1;
  double value = -1;
  const std::string line = metrics.substr(at + name.size() + 2);
  EXPECT_TRUE(absl::SimpleAtod(line.substr(0, line.find('\n')), &value));
  return value;
}

double OpenAt(const SamplerServer& server) {
  return ValueOf(server.Metrics(), "millrace_open_connections");
}

void ExpectSilenceIsEnded(const ServerOptions& options,
                          const std::vector<std::string>& beginnings) {
  FleetHarness fleet(testing::SmallGraph(), 1, options);
  for (const std::string& bytes : beginnings) {
    const SocketClient client(fleet.server(0).port());
    client.Send(bytes);
    EXPECT_TRUE(client.AwaitEnd()) << bytes;
  }
}

TEST(ConnectionsTest, ClosesConnectionsWithoutAHandshake) {
  ServerOptions options;
  options.handshake_timeout = absl::Milliseconds(200);
  ExpectSilenceIsEnded(options, {"", "PRI", kPreface});
}

TEST(TlsConnectionsTest, ClosesConnectionsWithoutAHandshake) {
  const auto directory = testing::TestDirectory("tls_connections");
  const testing::TestCa ca("our CA");
  const testing::CertificatePem pem = ca.Issue({});
  ServerOptions options;
  options.tls.cert = directory / "server.pem";
  options.tls.key = directory / "server.key";
  options.tls.ca = directory / "ca.pem";
  testing::ReplaceFile(options.tls.cert, pem.certificate);
  testing::ReplaceFile(options.tls.key, pem.key);
  testing::ReplaceFile(options.tls.ca, ca.pem());
  options.handshake_timeout = absl::Milliseconds(200);
  ExpectSilenceIsEnded(options, {"", kHello});
}

TEST(ConnectionsTest, ClosesIdleConnectionsAndClientsReconnect) {
  ServerOptions options;
  options.idle_timeout = absl::Seconds(1);
  FleetHarness fleet(testing::SmallGraph(), 1, options);
  const auto stub = fleet.Stub(0);
  for (int i = 0; i < 3; ++i) {
    // A call fails if its connection ends under it; the next one reconnects.
    EXPECT_TRUE(Eventually([&] { return Ask(*stub).ok(); }));
    EXPECT_TRUE(Eventually([&] { return OpenAt(fleet.server(0)) == 0; }));
  }
}

TEST(ConnectionsTest, OneAddressDoesNotCrowdOutOthers) {
  ServerOptions options;
  options.handshake_timeout = absl::Hours(1);
  options.connections.per_address = 4;
  FleetHarness fleet(testing::SmallGraph(), 1, options);
  const SamplerServer& server = fleet.server(0);
  std::vector<SocketClient> greedy;
  for (int i = 0; i < 10; ++i) greedy.emplace_back(server.port(), kAttacker);
  for (size_t i = 4; i < greedy.size(); ++i) {
    EXPECT_TRUE(greedy[i].AwaitEnd());
  }
  EXPECT_EQ(ValueOf(server.Metrics(), "millrace_refused_connections_total"), 6);
  const auto stub = fleet.Stub(0);
  const absl::Status status = Ask(*stub);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(OpenAt(server), 5);
}

// A health Watch never ends, so its connection is never idle.
TEST(ConnectionsTest, WatchesOfManyAddressesDoNotCrowdOutOthers) {
  ServerOptions options;
  options.connections.all = 40;
  FleetHarness fleet(testing::SmallGraph(), 1, options);
  const SamplerServer& server = fleet.server(0);
  std::map<std::string, std::vector<std::unique_ptr<RawHttp2>>> watches;
  for (const char* host :
       {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}) {
    for (int i = 0; i < 10; ++i) {
      auto watch = std::make_unique<RawHttp2>(server.address(), host);
      watch->SendRequest(watch->Open("/grpc.health.v1.Health/Watch"), "");
      watches[host].push_back(std::move(watch));
    }
  }
  const auto stub = fleet.Stub(0);
  const absl::Status status = Ask(*stub);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GE(
      ValueOf(server.Metrics(), "millrace_connections_ended_for_others_total"),
      1);
  // No address has lost connections within its share of a sixth.
  for (auto& [host, connections] : watches) {
    for (const auto& watch : connections) watch->AwaitRead();
    EXPECT_GE(std::count_if(connections.begin(), connections.end(),
                            [](const auto& watch) { return !watch->closed(); }),
              40 / 6)
        << host;
  }
}

TEST(ConnectionsTest, EndWithTheServer) {
  FleetHarness fleet(testing::SmallGraph(), 1);
  const auto clients = testing::SilentClients(fleet.server(0).port(), 20);
  fleet.StopServer(0);
  for (const SocketClient& client : clients) EXPECT_TRUE(client.AwaitEnd());
  EXPECT_FALSE(SocketClient(fleet.server(0).port()).connected());
}

// A server program with metrics.
class FilesTest : public ::testing::Test {
 protected:
  void Start(int max_files, const std::vector<std::string>& more = {}) {
    const auto port = stored_.directory() / "port";
    std::vector<std::string> arguments = {
        "--store",   stored_.path(), "--partition", "0",
        "--listen",  "127.0.0.1:0",  "--port-file", port,
        "--metrics", "127.0.0.1:0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    program_ = std::make_unique<testing::Program>(arguments, max_files);
    ASSERT_TRUE(program_->AwaitLog("serving partitions")) << program_->log();
    std::ifstream(port) >> port_;
    stub_ = NewClient();
    RaiseFileLimit();
  }

  double Value(const std::string& name) const {
    return ValueOf(testing::HttpGet(program_->metrics_port(), "/metrics"),
                   name);
  }

  // Allows the program to open `count` more files.
  void LimitFiles(int count) const {
    const std::filesystem::path open =
        "/proc/" + std::to_string(program_->pid()) + "/fd";
    rlim_t end = 0;  // one past the highest number in use
    for (; count > 0; ++end) {
      if (!is_symlink(open / std::to_string(end))) --count;
    }
    const rlimit limit = {end, end};
    ASSERT_EQ(prlimit(program_->pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  }

  void ExpectServed() const {
    const absl::Status status = Ask(*stub_);
    EXPECT_TRUE(status.ok()) << status;
  }

  // A client with a new connection.
  std::unique_ptr<v1::Sampler::Stub> NewClient() const {
    return StubOf("127.0.0.1:" + std::to_string(port_));
  }

  void ExpectNewClientIsServedSoon() const {
    EXPECT_TRUE(Eventually([this] { return Ask(*NewClient()).ok(); }))
        << program_->KillAndReadLog();
  }

  static void ExpectEnded(const std::vector<SocketClient>& clients) {
    for (const SocketClient& client : clients) EXPECT_TRUE(client.AwaitEnd());
  }

  void ExpectGoodEnd() const {
    program_->Signal(SIGTERM);
    EXPECT_EQ(program_->ExitStatus(), 0);
  }

  const testing::TestStore stored_{testing::SmallGraph(), 1};
  std::unique_ptr<testing::Program> program_;
  int port_ = 0;
  std::unique_ptr<v1::Sampler::Stub> stub_;
};

TEST_F(FilesTest, ServerOutOfFilesServesConnectedClients) {
  Start(/*max_files=*/0, {"--max-connections", "10000"});
  ExpectServed();
  LimitFiles(8);
  {
    const auto silent = testing::SilentClients(port_, 50, kAttacker);
    EXPECT_TRUE(program_->AwaitLog("out of file descriptors"))
        << program_->log();
    ExpectServed();
    ExpectEnded(silent);
  }
  ExpectNewClientIsServedSoon();
  ExpectServed();
  ExpectGoodEnd();
}

TEST_F(FilesTest, SilentConnectionsOfOneHostDoNotBlockOthers) {
  Start(/*max_files=*/1024);
  ExpectServed();
  const auto silent = testing::SilentClients(port_, 1500, kAttacker);
  ExpectServed();
  const absl::Status status = Ask(*NewClient());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(program_->AwaitLog(std::string("last_address=") + kAttacker +
                                 " reason=max_connections_per_address "));
  ExpectEnded(silent);
  EXPECT_GE(Value("millrace_refused_connections_total"), 1000);
  ExpectGoodEnd();
}

TEST_F(FilesTest, SilentConnectionsOfManyHostsEndSoon) {
  Start(/*max_files=*/1024, {"--max-connections", "100"});
  ExpectServed();
  std::vector<std::vector<SocketClient>> silent;
  for (const char* host :
       {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6"}) {
    silent.push_back(testing::SilentClients(port_, 25, host));
  }
  ExpectServed();
  EXPECT_TRUE(program_->AwaitLog("reason=max_connections limit=100"));
  for (const auto& clients : silent) ExpectEnded(clients);
  ExpectNewClientIsServedSoon();
  ExpectServed();
  ExpectGoodEnd();
}

TEST_F(FilesTest, ServerStillAcceptsAfterManyResets) {
  Start(/*max_files=*/1024);
  ExpectServed();
  for (int i = 0; i < 5000; ++i) {
    const SocketClient client(port_, kAttacker);
    const linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(client.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  ExpectServed();
  const absl::Status status = Ask(*NewClient());
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(
      Eventually([this] { return Value("millrace_open_connections") < 10; }));
  ExpectGoodEnd();
}

}  // namespace
}  // namespace millrace
