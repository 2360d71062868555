// SPDX-License-Identifier: Apache-2.0
#include "server/status_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/support/captured_log.h"
#include "tests/support/eventually.h"
#include "tests/support/free_port.h"
#include "tests/support/socket_client.h"
#include "tests/support/store_builder.h"
#include "tests/support/test_ca.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::HttpGet;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kYes[] = "HTTP/1.1 200 OK\r\n";
constexpr char kNo[] = "HTTP/1.1 503 Service Unavailable\r\n";

class StatusPagesTest : public testing::DirectoryTest {
 protected:
  void SetUp() override {
    testing::DirectoryTest::SetUp();
    EXPECT_TRUE(
        testing::WriteGraph(testing::SmallGraph(), 1, directory_ / "store")
            .ok());
    auto pages = StatusPages::Start({"127.0.0.1", 0});
    EXPECT_TRUE(pages.ok()) << pages.status();
    pages_ = *std::move(pages);
  }

  std::shared_ptr<SamplerServer> Serve(const ServerOptions& options = {}) {
    std::shared_ptr<SamplerServer> shared =
        SamplerServer::Start(Store::Open(directory_ / "store").value(), options)
            .value();
    pages_->SetServer(shared);
    return shared;
  }

  std::string Get(const std::string& path) const {
    return HttpGet(ParseHostPort(pages_->address())->port, path);
  }

  TlsOptions Tls(const testing::TestCa& ca,
                 const testing::CertificateSpec& spec) const {
    const testing::CertificatePem pem = ca.Issue(spec);
    TlsOptions options;
    options.ca = directory_ / "ca.pem";
    options.cert = directory_ / "server.pem";
    options.key = directory_ / "server.key";
    testing::ReplaceFile(options.ca, ca_.pem());
    testing::ReplaceFile(options.cert, pem.certificate);
    testing::ReplaceFile(options.key, pem.key);
    return options;
  }

  const testing::TestCa ca_{"our CA"};
  std::unique_ptr<StatusPages> pages_;
};

TEST_F(StatusPagesTest, FailUntilThereIsAServer) {
  for (const char* path : {"/healthz", "/readyz"}) {
    EXPECT_THAT(Get(path), AllOf(StartsWith(kNo), HasSubstr("starting")));
  }
  Serve();
  EXPECT_THAT(Get("/healthz"), AllOf(StartsWith(kYes), EndsWith("ok\n")));
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith(kYes), EndsWith("ready\n")));
}

TEST_F(StatusPagesTest, MetricsAreThereBeforeTheStore) {
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith(kYes), HasSubstr("\nmillrace_ready 0\n"),
                    HasSubstr("\nmillrace_draining 0\n"),
                    HasSubstr("\nmillrace_build_info{version=\""),
                    HasSubstr("\nprocess_resident_memory_bytes "),
                    Not(HasSubstr("millrace_store_info"))));
  Serve();
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith(kYes), HasSubstr("\nmillrace_ready 1\n"),
                    HasSubstr("\nmillrace_store_info{"),
                    HasSubstr("\nmillrace_build_info{version=\""),
                    HasSubstr("\nprocess_resident_memory_bytes ")));
}

TEST_F(StatusPagesTest, ServerOfSomePartitionsWithoutPeersSaysSo) {
  const auto serve = [&](const std::string& peers) {
    ServerOptions options;
    options.peers = peers;
    pages_->SetServer(
        SamplerServer::Start(Store::Open(directory_ / "parts", {0}).value(),
                             options)
            .value());
  };
  ASSERT_TRUE(
      testing::WriteGraph(testing::SmallGraph(), 2, directory_ / "parts").ok());
  serve("127.0.0.1:1");
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith(kYes), EndsWith("ready\n")));
  testing::CapturedLog log;
  serve("");
  EXPECT_THAT(log.text(),
              HasSubstr("no peers: batches that need other partitions fail "
                        "partitions=0 parts=2"));
  EXPECT_THAT(Get("/readyz"),
              AllOf(StartsWith(kYes),
                    EndsWith("ready for leaf calls only: this server has some "
                             "partitions and no peers\n")));
}

TEST_F(StatusPagesTest, ShowMetricsInPrometheusFormat) {
  ServerOptions options;
  options.max_inflight_bytes = 1 << 20;
  Serve(options);
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith(kYes),
                    HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; "
                              "charset=utf-8\r\n"),
                    HasSubstr("# TYPE millrace_max_inflight_bytes gauge\n"
                              "millrace_max_inflight_bytes 1048576"),
                    HasSubstr("# TYPE millrace_sample_seconds histogram\n")));
}

TEST_F(StatusPagesTest, ShowTheFleetToPeople) {
  EXPECT_THAT(Get("/status.json"),
              HasSubstr("\"state\":\"starting\",\"version\":\""));
  ServerOptions options;
  options.advertise = "this.example:7000";
  const auto server = Serve(options);
  EXPECT_THAT(Get("/"),
              AllOf(StartsWith(kYes),
                    HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"),
                    HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"),
                    HasSubstr("<!doctype html>")));
  const std::string answer = Get("/status.json");
  EXPECT_THAT(answer,
              AllOf(StartsWith(kYes),
                    HasSubstr("\r\nContent-Type: application/json\r\n")));
  const auto json =
      nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4));
  EXPECT_EQ(json["state"], "ready");
  EXPECT_EQ(json["store"]["name"], "store");
  EXPECT_EQ(json["missing_partitions"], nlohmann::json::array());
  ASSERT_EQ(json["servers"].size(), 1u);
  EXPECT_EQ(json["servers"][0]["address"], "this.example:7000");
  EXPECT_EQ(json["servers"][0]["partitions"], nlohmann::json::array({0}));
  EXPECT_NE(json["servers"][0]["version"], "");
  ASSERT_EQ(json["memory"].size(), 2u);
  for (const auto& memory : json["memory"]) {
    EXPECT_EQ(memory["memory"], "mmap");
    EXPECT_GT(memory["bytes"], 0);
  }
  EXPECT_TRUE(server->Drain(absl::Seconds(10)));
  EXPECT_THAT(Get("/status.json"), HasSubstr("\"state\":\"draining\""));
}

// A server that is in its own list of peers is shown once.
TEST_F(StatusPagesTest, ServerFindsItselfAmongItsPeers) {
  const int port = testing::FreePort();
  ServerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(port);
  options.peers = "localhost:" + std::to_string(port);
  const auto server = Serve(options);
  const auto shown = [&] {
    const std::string answer = Get("/status.json");
    return nlohmann::json::parse(
        answer.substr(answer.find("\r\n\r\n") + 4))["servers"];
  };
  EXPECT_TRUE(testing::Eventually([&] { return shown().size() == 1; }));
  EXPECT_EQ(shown()[0]["self"], true);
  EXPECT_EQ(shown()[0]["address"], options.peers);
}

TEST_F(StatusPagesTest, DrainingServerIsHealthyButNotReady) {
  const auto server = Serve();
  EXPECT_TRUE(server->Drain(absl::Seconds(10)));
  EXPECT_THAT(Get("/healthz"), StartsWith(kYes));
  EXPECT_THAT(Get("/readyz"), AllOf(StartsWith(kNo), EndsWith("draining\n")));
  EXPECT_THAT(Get("/metrics"),
              AllOf(StartsWith(kYes), HasSubstr("\nmillrace_ready 0\n"),
                    HasSubstr("\nmillrace_draining 1\n")));
}

TEST_F(StatusPagesTest, ServerThatDoesNotAnswerIsNotHealthy) {
  const auto server = Serve();
  ASSERT_THAT(Get("/healthz"), StartsWith(kYes));
  server->Stop();
  const auto no = AllOf(StartsWith(kNo),
                        HasSubstr(server->address() + " does not answer: "));
  EXPECT_THAT(Get("/healthz"), no);
  EXPECT_THAT(Get("/readyz"), no);
  EXPECT_THAT(Get("/metrics"), StartsWith(kYes));
}

TEST_F(StatusPagesTest, ServerAtEveryAddressIsHealthy) {
  ServerOptions options;
  options.listen = "0.0.0.0:0";
  Serve(options);
  EXPECT_THAT(Get("/healthz"), StartsWith(kYes));
}

TEST_F(StatusPagesTest, ServerWithTlsIsHealthy) {
  ServerOptions options;
  options.tls = Tls(ca_, {});
  Serve(options);
  EXPECT_THAT(Get("/healthz"), StartsWith(kYes));
}

// The server's own certificate need not be one that it would accept from a
// client.
TEST_F(StatusPagesTest, ServerWithMutualTlsIsHealthy) {
  ServerOptions options;
  options.clients.require_certificate = true;
  options.clients.allow = {"trainer.example"};
  const testing::TestCa public_ca("another CA");
  testing::CertificateSpec spec;
  spec.usage = "serverAuth";
  options.tls = Tls(public_ca, spec);
  Serve(options);
  EXPECT_THAT(Get("/healthz"), StartsWith(kYes));
}

}  // namespace
}  // namespace millrace
