// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/tls.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/base/field_error.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/file/file.h"
#include "common/grpc/fleet/fleet.h"
#include "common/net/host_port.h"
#include "common/net/listening_socket.h"
#include "common/wire/error_info.h"
#include "tests/support/captured_log.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/test_ca.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using testing::CertificatePem;
using testing::CertificateSpec;
using testing::FleetHarness;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ReplaceFile;
using testing::TestCa;

constexpr absl::Duration kOneDay = absl::Hours(24);
// Longer than any expected failure takes.
constexpr absl::Duration kLong = absl::Seconds(60);

class TlsTest : public testing::DirectoryTest {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    ReplaceFile(directory_ / name, content);
    return directory_ / name;
  }

  // Writes NAME.pem and NAME.key with a new certificate.
  void WriteIdentity(const std::string& name, const TestCa& ca,
                     const CertificateSpec& spec = {}) {
    const CertificatePem pem = ca.Issue(spec);
    Write(name + ".key", pem.key);
    Write(name + ".pem", pem.certificate);
  }

  // Options of a program with that identity (see WriteIdentity; empty: none).
  TlsOptions Tls(const std::string& ca, const std::string& name) {
    TlsOptions options;
    options.ca = Write(name + "-ca.pem", ca);
    if (!name.empty()) {
      options.cert = directory_ / (name + ".pem");
      options.key = directory_ / (name + ".key");
    }
    options.reload_interval = absl::Milliseconds(20);
    return options;
  }
  TlsOptions NewTls(const TestCa& ca, const std::string& name,
                    const CertificateSpec& spec = {}) {
    WriteIdentity(name, ca, spec);
    return Tls(ca.pem(), name);
  }

  // A server with a certificate from our CA, which requires one from clients.
  ServerOptions Mutual() {
    ServerOptions options;
    options.tls = NewTls(ca_, "server");
    options.clients.require_certificate = true;
    return options;
  }

  // The same, but it shows this certificate.
  ServerOptions Showing(const CertificatePem& pem) {
    ServerOptions options = Mutual();
    Write("server.pem", pem.certificate);
    Write("server.key", pem.key);
    return options;
  }

  // A certificate that has expired, but not according to the clock AnHourAgo.
  static CertificateSpec Expired() {
    CertificateSpec spec;
    spec.end = absl::Now() - absl::Minutes(10);
    return spec;
  }
  static absl::Time AnHourAgo() { return absl::Now() - absl::Hours(1); }

  // A certificate signed by `ca`, with that of `ca`.
  static CertificatePem WithChain(const TestCa& ca) {
    CertificatePem pem = ca.Issue({});
    pem.certificate += ca.pem();
    return pem;
  }

  // Connects a client to these servers; returns the error.
  static absl::Status Connect(const std::string& list, const TlsOptions& tls,
                              absl::Duration patience = kLong) {
    FleetOptions options;
    options.list = list;
    auto files = OpenClientTls(tls);
    if (!files.ok()) return files.status();
    options.tls = *std::move(files);
    auto fleet = Fleet::Create(std::move(options));
    if (!fleet.ok()) return fleet.status();
    return (*fleet)->WaitForManifest(SteadyNow() + patience).status();
  }

  // Like Connect, for a failure that waiting cannot resolve.
  static absl::Status ConnectInVain(const std::string& list,
                                    const TlsOptions& tls) {
    const SteadyTime start = SteadyNow();
    absl::Status status = Connect(list, tls);
    EXPECT_LT(SteadyNow() - start, kLong / 2) << "it waits: " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(list));
    return status;
  }

  // Makes a call of any method with an empty request; returns its status.
  static absl::Status Call(const std::shared_ptr<::grpc::Channel>& channel,
                           const std::string& method) {
    ::grpc::TemplatedGenericStub<::grpc::ByteBuffer, ::grpc::ByteBuffer> stub(
        channel);
    ::grpc::ClientContext context;
    testing::SetDeadline(context, absl::Seconds(20));
    const ::grpc::Slice nothing("");
    const ::grpc::ByteBuffer request(&nothing, 1);
    ::grpc::ByteBuffer reply;
    Notification done;
    absl::Status result;
    stub.UnaryCall(&context, method, {}, &request, &reply,
                   [&](::grpc::Status status) {
                     result = FromGrpcStatus(status);
                     done.Notify();
                   });
    done.WaitForNotification();
    return result;
  }
  // The same, on a connection of its own.
  static absl::Status Call(const std::string& address,
                           const std::shared_ptr<TlsFiles>& files,
                           const std::string& method) {
    return Call(Connector(files, address).Connect(address), method);
  }
  static absl::Status Call(const std::string& address, const TlsOptions& tls,
                           const std::string& method) {
    return Call(address, *OpenClientTls(tls), method);
  }

  // Whether such clients are soon accepted, or refused if not `expected`.
  static bool SoonConnects(const std::string& list, const TlsOptions& tls,
                           bool expected) {
    const SteadyTime deadline = SteadyNow() + kLong;
    while (SteadyNow() < deadline) {
      if (Connect(list, tls, absl::Milliseconds(300)).ok() == expected) {
        return true;
      }
    }
    return false;
  }

  const TestCa ca_{"our CA"};
  const TestCa other_ca_{"their CA"};
};

TEST_F(TlsTest, ServersAndClientsPresentCertificates) {
  FleetHarness servers(testing::SmallGraph(), 2, Mutual());
  const TlsOptions tls = NewTls(ca_, "client");
  EXPECT_TRUE(Connect("@" + servers.list(), tls).ok());

  // The home calls the other server as its peer.
  const std::string& home = servers.server(0).address();
  const auto stub =
      v1::Sampler::NewStub(Connector(*OpenClientTls(tls), home).Connect(home));
  JobSpec spec;
  spec.fanouts = {-1, -1};
  spec.batch_size = 8;
  const auto result =
      testing::CallSample(*stub, testing::SampleRequestOf(spec, Columns(), 0));
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST_F(TlsTest, OneWayTlsAcceptsClientsWithoutACertificate) {
  ServerOptions options = Mutual();
  options.clients.require_certificate = false;
  FleetHarness servers(testing::SmallGraph(), 1, options);
  EXPECT_TRUE(Connect(servers.server(0).address(), Tls(ca_.pem(), "")).ok());
}

TEST_F(TlsTest, ClientsSayWhatIsWrongWithAServer) {
  FleetHarness servers(testing::SmallGraph(), 1, Mutual());
  const std::string address = servers.server(0).address();

  WriteIdentity("client", ca_);
  const absl::Status unknown =
      ConnectInVain(address, Tls(other_ca_.pem(), "client"));
  EXPECT_TRUE(absl::IsUnauthenticated(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("server " + address +
                        ": its certificate \"CN=localhost\" (localhost, "
                        "127.0.0.1) is not signed by the CA in " +
                        (directory_ / "client-ca.pem").string() + "\n"));

  TlsOptions tls = Tls(ca_.pem(), "client");
  tls.server_name = "elsewhere.example";
  const absl::Status name = ConnectInVain(address, tls);
  EXPECT_TRUE(absl::IsUnauthenticated(name)) << name;
  EXPECT_THAT(std::string(name.message()),
              HasSubstr("is not for elsewhere.example"));
}

TEST_F(TlsTest, ServersAreVerifiedByGrpc) {
  const TlsOptions client = NewTls(ca_, "client");
  const auto error = [&](const CertificatePem& shown) {
    ServerOptions options = Showing(shown);
    options.tls.clock = AnHourAgo;
    FleetHarness servers(testing::SmallGraph(), 1, options);
    return std::string(
        ConnectInVain(servers.server(0).address(), client).message());
  };
  EXPECT_THAT(error(TestCa("our CA").Issue({})), HasSubstr("is not signed by"));
  EXPECT_THAT(error(ca_.Issue(Expired())), HasSubstr("expired at 20"));
  CertificateSpec spec;
  spec.usage = "clientAuth";
  EXPECT_THAT(error(ca_.Issue(spec)), HasSubstr("purpose"));
  const TestCa leaf("leaf", &ca_, /*authority=*/false);
  EXPECT_THAT(error(WithChain(leaf)), HasSubstr("\"CN=leaf\" (no names) is"));
}

TEST_F(TlsTest, ClientsAreVerifiedByGrpc) {
  FleetHarness servers(testing::SmallGraph(), 1, Mutual());
  const std::string address = servers.server(0).address();
  const auto expect_refusal = [&](const CertificatePem& shown,
                                  const std::string& why) {
    const testing::CapturedLog log;
    Write("client.pem", shown.certificate);
    Write("client.key", shown.key);
    TlsOptions client = Tls(ca_.pem(), "client");
    client.clock = AnHourAgo;
    const auto files = OpenClientTls(client);
    ASSERT_TRUE(files.ok()) << files.status();
    // The log may have had another client's line a moment ago.
    EXPECT_TRUE(testing::Eventually([&] {
      EXPECT_TRUE(absl::IsUnavailable(
          Call(address, *files, "/grpc.health.v1.Health/Check")));
      return absl::StrContains(log.text(), "a client is refused ");
    }));
    EXPECT_THAT(log.text(),
                HasSubstr(absl::StrReplaceAll(why, {{"\"", "\\\""}})));
  };
  expect_refusal(TestCa("our CA").Issue({}),
                 "certificate \"CN=localhost\" (localhost, 127.0.0.1) is not "
                 "signed by a trusted CA");
  expect_refusal(ca_.Issue(Expired()), "expired at 20");
  CertificateSpec spec;
  spec.usage = "serverAuth";
  expect_refusal(ca_.Issue(spec), "purpose");
  const TestCa leaf("leaf", &ca_, /*authority=*/false);
  expect_refusal(WithChain(leaf), "\"CN=leaf\" (no names) is refused");
}

TEST_F(TlsTest, ChainsMayHaveIntermediateCas) {
  const TestCa middle("middle", &ca_);
  ServerOptions options = Showing(WithChain(middle));
  FleetHarness servers(testing::SmallGraph(), 1, options);
  const std::string address = servers.server(0).address();
  EXPECT_TRUE(Connect(address, NewTls(ca_, "client")).ok());
  // The client may also trust only the intermediate CA.
  WriteIdentity("client", ca_);
  EXPECT_TRUE(Connect(address, Tls(middle.pem(), "client")).ok());
}

// gRPC's check of host names accepts all of these.
TEST_F(TlsTest, HostsAreNeitherCommonNamesNorPartsOfNames) {
  const TlsOptions client = NewTls(ca_, "client");
  // The last one is "localhost", a zero byte, and "no".
  for (const auto& [names, host] :
       std::vector<std::pair<std::string, std::string>>{
           {"", "localhost"},
           {"IP:10.0.0.7", "localhost"},
           {"DNS:127.0.0.1", "127.0.0.1"},
           {"DNS:*.0.0.1", "127.0.0.1"},
           {"DER:300e820c6c6f63616c686f7374006e6f", "localhost"}}) {
    CertificateSpec spec;
    spec.names = names;
    FleetHarness servers(testing::SmallGraph(), 1, Showing(ca_.Issue(spec)));
    const int port = servers.server(0).port();
    const absl::Status status =
        ConnectInVain(HostPort{host, 0}.WithPort(port), client);
    EXPECT_THAT(std::string(status.message()), HasSubstr("is not for " + host));
  }
}

TEST_F(TlsTest, WildcardsOfServersStandForOneLabel) {
  CertificateSpec spec;
  spec.names = "DNS:*.fleet.example,DNS:part*.example";
  FleetHarness servers(testing::SmallGraph(), 1, Showing(ca_.Issue(spec)));
  const std::string address = servers.server(0).address();
  TlsOptions client = NewTls(ca_, "client");
  client.server_name = "S1.fleet.example";
  EXPECT_TRUE(Connect(address, client).ok());
  for (const char* name : {"fleet.example", "a.s1.fleet.example",
                           "partial.example", "s1fleet.example"}) {
    client.server_name = name;
    EXPECT_THAT(std::string(ConnectInVain(address, client).message()),
                HasSubstr("is not for " + client.server_name));
  }
}

TEST_F(TlsTest, TheServerNameMayBeAnAddress) {
  CertificateSpec spec;
  spec.names = "IP:10.0.0.7,IP:fd00::7";
  FleetHarness servers(testing::SmallGraph(), 1, Showing(ca_.Issue(spec)));
  const std::string address = servers.server(0).address();
  TlsOptions client = NewTls(ca_, "client");
  for (const char* name : {"10.0.0.7", "fd00::7", "FD00:0::7"}) {
    client.server_name = name;
    EXPECT_TRUE(Connect(address, client).ok()) << name;
  }
  client.server_name = "10.0.0.8";
  EXPECT_THAT(std::string(ConnectInVain(address, client).message()),
              HasSubstr("is not for 10.0.0.8"));
}

TEST_F(TlsTest, ServersThatAreRefusedDoNotSeeTheClientsCertificate) {
  FleetHarness servers(testing::SmallGraph(), 1, Mutual());
  const testing::CapturedLog log;
  const absl::Status unknown =
      ConnectInVain(servers.server(0).address(), NewTls(other_ca_, "client"));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("is not signed by"));
  EXPECT_THAT(log.text(), Not(HasSubstr("a client is refused")));
}

TEST_F(TlsTest, AddressesMayBeWrittenInAnyForm) {
  if (!ListeningSocket::Open({"::1", 0}, "").ok()) {
    GTEST_SKIP() << "this host has no IPv6";
  }
  CertificateSpec spec;
  spec.names = "IP:::1";
  ServerOptions options = Showing(ca_.Issue(spec));
  options.listen = "[::1]:0";
  FleetHarness servers(testing::SmallGraph(), 1, options);
  const std::string port = std::to_string(servers.server(0).port());
  const TlsOptions client = NewTls(ca_, "client");
  EXPECT_TRUE(Connect("[::1]:" + port, client).ok());
  EXPECT_TRUE(Connect("[0:0:0:0:0:0:0:1]:" + port, client).ok());
}

// Regardless of its issuer, purpose and names.
TEST_F(TlsTest, AcceptsTheServersOwnCertificate) {
  CertificateSpec spec;
  spec.usage = "serverAuth";
  ServerOptions options = Showing(other_ca_.Issue(spec));
  options.clients.allow = {"trainer"};
  std::atomic<int> days = 0;
  options.tls.clock = [&days] { return absl::Now() + days.load() * kOneDay; };
  FleetHarness servers(testing::SmallGraph(), 1, options);
  TlsOptions client = Tls(other_ca_.pem(), "server");
  client.ca = Write("client-ca.pem", other_ca_.pem());
  const auto health = [&] {
    return Call(servers.server(0).address(), client,
                "/grpc.health.v1.Health/Check");
  };
  EXPECT_TRUE(health().ok()) << health();
  days = 31;
  EXPECT_TRUE(absl::IsUnavailable(health())) << health();
  days = 0;
  WriteIdentity("client", other_ca_, spec);
  client = Tls(other_ca_.pem(), "client");
  EXPECT_TRUE(absl::IsUnavailable(health())) << health();
}

// Even if the same intermediate CA has issued the other certificate as well.
TEST_F(TlsTest, AServerMistakesNoOtherForItself) {
  const TestCa middle("middle", &ca_);
  FleetHarness servers(testing::SmallGraph(), 1, Showing(WithChain(middle)));
  const auto health = [&](const std::string& identity) {
    const auto files = *TlsFiles::Open(Tls(ca_.pem(), identity));
    return Call(::grpc::CreateChannel(servers.server(0).address(),
                                      OwnServerCredentials(files)),
                "/grpc.health.v1.Health/Check");
  };
  EXPECT_TRUE(health("server").ok()) << health("server");
  const CertificatePem another = WithChain(middle);
  Write("another.pem", another.certificate);
  Write("another.key", another.key);
  EXPECT_TRUE(absl::IsUnavailable(health("another"))) << health("another");
}

TEST_F(TlsTest, NamesOfDnsListsAreThoseOfTheCertificate) {
  CertificateSpec named;
  named.names = "DNS:localhost";  // and not the address behind it
  ServerOptions options = Mutual();
  options.tls = NewTls(ca_, "server", named);
  FleetHarness servers(testing::SmallGraph(), 1, options);
  const std::string port = std::to_string(servers.server(0).port());
  const TlsOptions tls = NewTls(ca_, "client");
  EXPECT_TRUE(Connect("dns:///localhost:" + port, tls).ok());
  EXPECT_TRUE(Connect("localhost:" + port, tls).ok());
  EXPECT_THAT(std::string(ConnectInVain("127.0.0.1:" + port, tls).message()),
              HasSubstr("is not for 127.0.0.1"));
}

TEST_F(TlsTest, ServersRefuseClientsOfOtherCas) {
  CertificateSpec lasting;
  lasting.end = absl::Now() + 300 * kOneDay;
  ServerOptions options = Mutual();
  options.tls = NewTls(ca_, "server", lasting);
  std::atomic<int> days = 0;
  options.tls.clock = [&days] { return absl::Now() + days.load() * kOneDay; };
  FleetHarness servers(testing::SmallGraph(), 1, options);
  const std::string address = servers.server(0).address();
  const auto refused = [&](const TlsOptions& tls) {
    const absl::Status status = ConnectInVain(address, tls);
    EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
    return std::string(status.message());
  };
  const auto wants_certificate =
      AllOf(HasSubstr(address),
            HasSubstr("ended the handshake; does it want a certificate"));

  EXPECT_THAT(refused(Tls(ca_.pem(), "")), wants_certificate);
  WriteIdentity("stranger", other_ca_);
  EXPECT_THAT(refused(Tls(ca_.pem(), "stranger")), wants_certificate);
  const TlsOptions client = NewTls(ca_, "client");
  EXPECT_TRUE(Connect(address, client).ok());
  days = 31;
  EXPECT_THAT(refused(client), wants_certificate);
}

TEST_F(TlsTest, PlaintextAndTlsDoNotMix) {
  FleetHarness secure(testing::SmallGraph(), 1, Mutual());
  const absl::Status plain =
      Connect(secure.server(0).address(), TlsOptions(), absl::Seconds(2));
  EXPECT_TRUE(absl::IsUnavailable(plain)) << plain;
  EXPECT_THAT(std::string(plain.message()),
              AllOf(HasSubstr(secure.server(0).address()),
                    HasSubstr("does it want TLS?")));

  FleetHarness open(testing::SmallGraph(), 1);
  const absl::Status tls =
      ConnectInVain(open.server(0).address(), NewTls(ca_, "client"));
  EXPECT_TRUE(absl::IsUnauthenticated(tls)) << tls;
  EXPECT_THAT(std::string(tls.message()), HasSubstr("answers in plaintext"));
}

TEST_F(TlsTest, OnlyAllowedNamesGetPastTheHandshake) {
  ServerOptions options = Mutual();
  options.clients.allow = {"trainer", "*.fleet.example"};
  FleetHarness servers(testing::SmallGraph(), 1, options);
  const std::string address = servers.server(0).address();

  CertificateSpec spec;
  spec.name = "someone";
  spec.names = "DNS:laptop.example";
  const TlsOptions someone = NewTls(ca_, "someone", spec);
  const absl::Status refused = ConnectInVain(address, someone);
  EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr(address), HasSubstr("ended the handshake")));

  spec.names = "DNS:S1.fleet.example";
  const TlsOptions member = NewTls(ca_, "member", spec);
  spec.name = "trainer";
  spec.names = "";
  const TlsOptions trainer = NewTls(ca_, "trainer", spec);
  for (const char* method :
       {"/millrace.v1.Sampler/Describe", "/millrace.v1.Sampler/Sample",
        "/grpc.health.v1.Health/Check", "/no.such/Method",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    EXPECT_TRUE(absl::IsUnavailable(Call(address, someone, method))) << method;
    EXPECT_FALSE(absl::IsUnavailable(Call(address, member, method))) << method;
  }
  EXPECT_TRUE(Call(address, trainer, "/grpc.health.v1.Health/Check").ok());
}

TEST_F(TlsTest, RenewedCertificatesAreUsedWithoutRestart) {
  FleetHarness servers(testing::SmallGraph(), 1, Mutual());
  const std::string address = servers.server(0).address();
  const TlsOptions tls = NewTls(ca_, "client");
  ASSERT_TRUE(Connect(address, tls).ok());

  // With half a file, or the key of another certificate, the old identity stays
  // in use.
  const auto read = [&](const char* name) {
    return *ReadFile(directory_ / name, 1 << 20);
  };
  const std::string whole = read("server.pem");
  const auto await_refusal = [](const testing::CapturedLog& log,
                                const std::string& why) {
    EXPECT_TRUE(testing::Eventually([&] {
      return absl::StrContains(log.text(), why);
    })) << log.text();
    EXPECT_THAT(log.text(),
                HasSubstr("the TLS files cannot be reloaded: those read before "
                          "stay in use"));
  };
  {
    const testing::CapturedLog log;
    Write("server.pem", whole.substr(0, whole.size() / 2));
    await_refusal(log, "does not contain a complete certificate");
    EXPECT_TRUE(Connect(address, tls).ok());
  }
  {
    const testing::CapturedLog log;
    Write("server.pem", ca_.Issue({}).certificate);
    await_refusal(log, "server.key: does not match the certificate");
    EXPECT_TRUE(Connect(address, tls).ok());
  }

  // Clients that require the new name succeed once both files are there.
  TlsOptions renamed = tls;
  renamed.server_name = "renewed.example";
  EXPECT_FALSE(Connect(address, renamed).ok());
  CertificateSpec spec;
  spec.names = "DNS:renewed.example";
  WriteIdentity("server", ca_, spec);
  EXPECT_TRUE(SoonConnects(address, renamed, true));

  // The server now accepts clients of another CA.
  Write("server-ca.pem", other_ca_.pem());
  EXPECT_TRUE(SoonConnects(address, renamed, false));
  Write("server-ca.pem", other_ca_.pem() + ca_.pem());
  EXPECT_TRUE(SoonConnects(address, renamed, true));
}

TEST_F(TlsTest, RunningClientsPickUpRenewedFiles) {
  FleetHarness servers(testing::SmallGraph(), 1, Mutual());
  const TlsOptions tls = NewTls(ca_, "client");
  FleetOptions options;
  options.list = "@" + servers.list();
  options.tls = *OpenClientTls(tls);
  auto fleet = Fleet::Create(std::move(options));
  ASSERT_TRUE(fleet.ok());
  ASSERT_TRUE((*fleet)->Pick(0, SteadyNow() + kLong).ok());

  // The whole fleet moves to another CA, while the client's process keeps
  // running.
  WriteIdentity("server", other_ca_);
  Write("server-ca.pem", other_ca_.pem());
  WriteIdentity("client", other_ca_);
  Write("client-ca.pem", other_ca_.pem());
  servers.StopServer(0);
  servers.StartServer(0);
  const std::string& now = servers.server(0).address();
  EXPECT_TRUE(testing::Eventually([&] {
    const auto member = (*fleet)->Pick(0, SteadyNow() + kLong);
    EXPECT_TRUE(member.ok()) << member.status();
    return !member.ok() || (*member)->address == now;
  }));
}

TEST_F(TlsTest, RunningClientsForgetCas) {
  FleetHarness servers(testing::SmallGraph(), 1, Mutual());
  const std::string address = servers.server(0).address();
  const Connector connector(*OpenClientTls(NewTls(ca_, "client")), address);
  const auto health = [&] {
    return Call(connector.Connect(address), "/grpc.health.v1.Health/Check");
  };
  EXPECT_TRUE(health().ok()) << health();
  Write("client-ca.pem", other_ca_.pem());
  EXPECT_TRUE(
      testing::Eventually([&] { return absl::IsUnavailable(health()); }));
}

// The number of memory files with identities that this process holds open.
int OpenIdentities() {
  int count = 0;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const auto file = std::filesystem::read_symlink(fd.path(), gone);
    count += file.string().starts_with("/memfd:millrace") ? 1 : 0;
  }
  return count;
}

TEST_F(TlsTest, HoldsNothingAfterConnectionsHaveEnded) {
  const TlsOptions tls = NewTls(ca_, "client");
  {
    FleetHarness servers(testing::SmallGraph(), 1, Mutual());
    for (int i = 0; i < 5; ++i) {
      ASSERT_TRUE(Connect("@" + servers.list(), tls).ok());
    }
    EXPECT_GE(OpenIdentities(), 1);
  }
  // gRPC closes connections at its own pace.
  EXPECT_TRUE(testing::Eventually([] { return OpenIdentities() == 0; }));
}

TEST_F(TlsTest, ServersDoNotStartWithWrongFiles) {
  const testing::TestGraph graph = testing::SmallGraph();
  FleetHarness servers(graph, 1);
  const auto error = [&](const ServerOptions& options) {
    return std::string(
        SamplerServer::Start(servers.store(), options).status().message());
  };
  ServerOptions options = Mutual();
  options.tls.cert = directory_ / "nothing.pem";
  EXPECT_THAT(error(options),
              AllOf(HasSubstr("tls_cert: cannot"), HasSubstr("nothing.pem")));

  options = Mutual();
  WriteIdentity("another", ca_);
  options.tls.key = directory_ / "another.key";
  EXPECT_THAT(error(options), HasSubstr("does not match the certificate"));

  options = Mutual();
  options.tls.clock = [] { return absl::Now() + 31 * kOneDay; };
  EXPECT_THAT(error(options), HasSubstr("server.pem: expired at 20"));

  options = Mutual();
  options.tls.ca = "";
  EXPECT_EQ(error(options), "tls_client_auth require needs tls_ca");
  options.clients.require_certificate = false;
  options.peers = "127.0.0.1:1";
  EXPECT_THAT(error(options), HasSubstr("tls_ca is needed: peers"));

  options = Mutual();
  options.tls.cert = options.tls.key = "";
  EXPECT_THAT(error(options), HasSubstr("tls_cert is needed"));

  options = ServerOptions();
  options.clients.allow = {"trainer"};
  EXPECT_EQ(error(options), "tls_allow needs tls_client_auth require");

  options = Mutual();
  options.clients.allow = {"trainer", "*"};
  EXPECT_THAT(error(options), HasSubstr("tls_allow \"*\": not a name\n"));
}

TEST_F(TlsTest, ClientsNeedACa) {
  TlsOptions options = NewTls(ca_, "client");
  options.ca = "";
  const absl::Status status = Connect("127.0.0.1:1", options);
  EXPECT_TRUE(IsUsageError(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("tls_ca is needed"));
}

// A server that presents a good certificate and ends the connection twice does
// not accept the client's. Another server on the same host may.
TEST_F(TlsTest, OneServersHandshakeImpliesNothingAboutAnother) {
  FleetHarness servers(testing::SmallGraph(), 1, Mutual());
  const std::string address = servers.server(0).address();
  const std::string neighbor = "127.0.0.1:1";
  const auto files = OpenClientTls(NewTls(ca_, "client"));
  ASSERT_TRUE(files.ok()) << files.status();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Call(address, *files, "/grpc.health.v1.Health/Check").ok());
  }
  const auto explain = [&](const std::string& server) {
    return ExplainConnection(
        absl::UnavailableError("failed to connect to all addresses; last "
                               "error: Socket closed"),
        server, files->get());
  };
  EXPECT_TRUE(absl::IsUnauthenticated(explain(address))) << explain(address);
  EXPECT_TRUE(absl::IsUnavailable(explain(neighbor))) << explain(neighbor);
  EXPECT_TRUE(ExplainConnection({}, neighbor, files->get()).ok());
  EXPECT_TRUE(absl::IsUnauthenticated(explain(address))) << explain(address);
  EXPECT_TRUE(ExplainConnection({}, address, files->get()).ok());
  EXPECT_TRUE(absl::IsUnavailable(explain(address))) << explain(address);
}

TEST_F(TlsTest, OtherFailuresAreNotExplained) {
  const auto files = OpenClientTls(Tls(ca_.pem(), ""));
  ASSERT_TRUE(files.ok()) << files.status();
  for (const absl::Status& status :
       {absl::OkStatus(), absl::InternalError("x"),
        absl::UnavailableError("Socket closed"),
        absl::UnavailableError("failed to connect to all addresses; last "
                               "error: Connection refused")}) {
    EXPECT_EQ(ExplainConnection(status, "a:1", files->get()), status);
    EXPECT_EQ(ExplainConnection(status, "a:1", nullptr), status);
  }
}

}  // namespace
}  // namespace millrace
