// SPDX-License-Identifier: Apache-2.0
// The millrace-server program: start, port file, SIGTERM, exit status.
#include "tests/support/server_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/socket_client.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::HttpGet;
using testing::Program;
using ::testing::StartsWith;

class ServerProgramTest : public ::testing::Test {
 protected:
  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {
        "--store",     stored_.path().string(),
        "--listen",    "127.0.0.1:0",
        "--port-file", (stored_.directory() / "port").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  const testing::TestStore stored_{testing::SmallGraph(), 2};
};

TEST_F(ServerProgramTest, ServesUntilSigtermAndExitsWithZero) {
  Program server(Arguments({"--partition", "0"}));
  ASSERT_TRUE(
      server.AwaitLog("serving partitions=0 parts=2 address=127.0.0.1:"))
      << server.log();
  int port = 0;
  std::ifstream(stored_.directory() / "port") >> port;
  EXPECT_GT(port, 0);
  EXPECT_NE(server.log().find(":" + std::to_string(port)), std::string::npos);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST_F(ServerProgramTest, ServesAllPartitionsFromMemory) {
  Program server(Arguments({"--partition", "all", "--graph-memory", "ram",
                            "--feature-memory", "ram", "--verify-on-start",
                            "--metrics", "127.0.0.1:0"}));
  ASSERT_TRUE(server.AwaitLog("serving partitions=0,1 parts=2 "))
      << server.log();
  server.Signal(SIGINT);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST_F(ServerProgramTest, AnswersProbesAndPrometheus) {
  Program server(Arguments({"--partition", "0", "--metrics", "127.0.0.1:0"}));
  ASSERT_TRUE(server.AwaitLog("serving partitions")) << server.log();
  const int port = server.metrics_port();
  EXPECT_THAT(HttpGet(port, "/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(HttpGet(port, "/readyz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(HttpGet(port, "/metrics"),
              HasSubstr("\nmillrace_inflight_calls{method=\"Sample\"} 0\n"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.ExitStatus(), 0);
}

TEST_F(ServerProgramTest, ServesMetricsOnOtherAddressesOnRequest) {
  for (const char* flag : {"--metrics-plaintext", "--plaintext"}) {
    Program server(
        Arguments({"--partition", "0", "--metrics", "0.0.0.0:0", flag}));
    ASSERT_TRUE(server.AwaitLog("serving partitions")) << server.log();
    EXPECT_THAT(HttpGet(server.metrics_port(), "/healthz"),
                StartsWith("HTTP/1.1 200 OK\r\n"));
  }
}

TEST_F(ServerProgramTest, MetricsAddressesFollowTheRulesOfListen) {
  for (const auto& [metrics, why] : std::map<std::string, std::string>{
           {"9100", "\"9100\" is not HOST:PORT"},
           {"127.0.0.1:9100,9101", "is not HOST:PORT"},
           {"127.0.0.1:70000", "a port of 0 to 65535"},
           {"0.0.0.0:0",
            "can be reached from other hosts, but metrics are not encrypted"},
           {"[::]:0", "add --metrics-plaintext"}}) {
    Program server(Arguments({"--partition", "0", "--metrics", metrics}));
    EXPECT_TRUE(server.AwaitLog(why)) << server.log();
    EXPECT_EQ(server.ExitStatus(), 2) << metrics;
  }
}

TEST_F(ServerProgramTest, SaysWhyItCannotListen) {
  Program first(Arguments({"--partition", "0"}));
  ASSERT_TRUE(first.AwaitLog("serving partitions")) << first.log();
  std::string port;
  ASSERT_TRUE(std::ifstream(stored_.directory() / "port") >> port);
  for (const auto& [listen, why] : std::map<std::string, std::string>{
           {"127.0.0.1:" + port, "Address already in use"},
           {"192.0.2.1:0", "Cannot assign requested address"}}) {
    Program second(
        Arguments({"--partition", "1", "--plaintext", "--listen", listen}));
    EXPECT_TRUE(
        second.AwaitLog("--listen " + listen + ": cannot listen there: " + why))
        << second.log();
    EXPECT_EQ(second.ExitStatus(), 1);
  }
}

TEST_F(ServerProgramTest, SaysWhyItCannotServeMetrics) {
  Program first(Arguments({"--partition", "0", "--metrics", "127.0.0.1:0"}));
  ASSERT_TRUE(first.AwaitLog("serving partitions")) << first.log();
  const std::string taken = "127.0.0.1:" + std::to_string(first.metrics_port());
  Program second(Arguments({"--partition", "1", "--metrics", taken}));
  EXPECT_TRUE(second.AwaitLog("--metrics " + taken +
                              ": cannot listen there: Address already in use"))
      << second.log();
  EXPECT_EQ(second.ExitStatus(), 1);
}

TEST_F(ServerProgramTest, RefusesWhatItCannotServe) {
  struct Case {
    std::vector<std::string> options;
    std::string why;
    int status = 2;
  };
  const std::string store = stored_.path().string();
  const std::vector<Case> cases = {
      {{"--partition", "2"},
       "no partition 2 in " + store + "; it has 0 to 1",
       1},
      {{"--partition", "0", "--store", "/nothing"},
       "no dataset or store at /nothing: there is no store.json",
       1},
      {{"--partition", "x"},
       "--partition x: \"x\" is not a partition; use a number, a list 0,2 or "
       "all"},
      {{"--partition", "0,-1"}, "--partition 0,-1: \"-1\" is not a partition"},
      {{"--partition", "0,"}, "--partition 0,: \"\" is not a partition"},
      {{}, "--partition is required"},
      {{"--partition", "0", "--graph-memory", "disk"}, "--graph-memory"},
      {{"--partition", "0", "--feature-memory", "disk"}, "--feature-memory"},
      {{"--partition", "0", "--peers", "nobody"}, "nobody"},
      {{"--partition", "0", "--drain-timeout", "soon"},
       "--drain-timeout \"soon\" is not a duration; write e.g. 500ms, 30s or "
       "2m"},
      {{"--partition", "0", "--drain-timeout", "-1s"},
       "--drain-timeout \"-1s\" is not a duration"},
      {{"--partition", "0", "--trace-slow", "often"},
       "--trace-slow \"often\" is not a duration"},
      {{"--partition", "0", "--listen", "0.0.0.0:0"},
       "--listen 0.0.0.0:0 can be reached from other hosts, but there is no "
       "--tls-cert\n"},
      {{"--partition", "0", "--plaintext", "--tls-cert", "a.pem"},
       "--plaintext and TLS options cannot be used together; leave one out"},
      {{"--partition", "0", "--threads", "4097"}, "4097"},
      {{"--partition", "0", "--threads", "-1"}, "-1"},
      {{"--partition", "0", "--max-connections", "1048577"}, "1048577"},
      {{"--partition", "0", "--max-connections-per-address", "1048577"},
       "1048577"},
      {{"--partition", "0", "--max-inflight-bytes", "much"}, "much"},
      {{"--partition", "0", "--scrub", "much"}, "much"},
      {{"--partition", "0", "--tls-client-auth", "maybe"}, "maybe"},
      {{"--partition", "0", "--port-file", "/nowhere/port"},
       "/nowhere/port",
       1},
  };
  for (const Case& refused : cases) {
    std::vector<std::string> arguments = {"--store", store, "--listen",
                                          "127.0.0.1:0"};
    for (const std::string& option : refused.options) {
      // An option may be given once only.
      for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
        if (arguments[i] != option) continue;
        arguments.erase(arguments.begin() + static_cast<ptrdiff_t>(i),
                        arguments.begin() + static_cast<ptrdiff_t>(i) + 2);
      }
      arguments.push_back(option);
    }
    Program server(arguments);
    EXPECT_TRUE(server.AwaitLog(refused.why)) << refused.why << server.log();
    EXPECT_EQ(server.ExitStatus(), refused.status) << refused.why;
  }
}

TEST_F(ServerProgramTest, VerifiesFilesOnRequestBeforeItServes) {
  // The last byte of the features of partition 1, behind which checks of sizes
  // do not look.
  const std::filesystem::path file =
      stored_.path() / "part-00001/nodes/node/feature.npy";
  std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
  bytes.seekp(-1, std::ios::end);
  bytes.put('\x7f');
  bytes.close();
  for (const char* partition : {"1", "all"}) {
    Program server(Arguments({"--partition", partition, "--verify-on-start"}));
    EXPECT_TRUE(server.AwaitLog(file.string() + " has the checksum "))
        << server.log();
    EXPECT_EQ(server.ExitStatus(), 1);
  }
  Program server(Arguments({"--partition", "0", "--verify-on-start"}));
  EXPECT_TRUE(server.AwaitLog("serving partitions=0 parts=2 ")) << server.log();
}

TEST_F(ServerProgramTest, LogsThePartitionsAndTheAdvertisedAddress) {
  Program server(Arguments(
      {"--partition", "1,0,1", "--advertise", "public.example:7001"}));
  EXPECT_TRUE(server.AwaitLog(
      "serving partitions=0,1 parts=2 address=public.example:7001 "))
      << server.log();
  server.Signal(SIGTERM);
  EXPECT_TRUE(server.AwaitLog("draining why=SIGTERM timeout=30s"))
      << server.log();
  EXPECT_EQ(server.ExitStatus(), 0);
}

}  // namespace
}  // namespace millrace
