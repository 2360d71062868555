// SPDX-License-Identifier: Apache-2.0
// millrace status and bench, and the servers of millrace up.
#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "client/cli/local_fleet.h"
#include "common/base/process_usage.h"
#include "tests/cli/command_runner.h"
#include "tests/support/eventually.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/scripted_sampler.h"
#include "tests/support/silent_listener.h"
#include "tests/support/test_ca.h"

namespace millrace::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

using FleetCommandsTest = CommandTest;

std::string AddressesOf(FleetHarness& servers, std::vector<int> parts) {
  std::string list;
  for (const int part : parts) {
    list += (list.empty() ? "" : ",") + servers.server(part).address();
  }
  return list;
}

TEST_F(FleetCommandsTest, StatusShowsEachServer) {
  ServerOptions options;
  options.max_inflight_bytes = 3 << 19;  // 1.5 MiB
  FleetHarness servers(SmallGraph(), 2, options);
  const std::string list = AddressesOf(servers, {1, 0});
  const OrderedJson json =
      JsonOf({"status", "--servers", list, "--json", "--wait", "20s"});
  EXPECT_EQ(json["missing_partitions"], OrderedJson::array());
  ASSERT_EQ(json["servers"].size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const OrderedJson& server = json["servers"][i];
    EXPECT_EQ(server["address"], servers.server(1 - i).address());
    EXPECT_EQ(server["state"], "ready");
    EXPECT_EQ(server["partitions"], OrderedJson({1 - i}));
    EXPECT_EQ(server["replica"], 0);
    EXPECT_EQ(server["inflight_bytes"], 0);
    EXPECT_EQ(server["max_inflight_bytes"], 3 << 19);
    EXPECT_GE(server["uptime_seconds"].get<double>(), 0);
    EXPECT_EQ(server["error"], "");
    EXPECT_EQ(server["damaged_partitions"], OrderedJson::object());
  }
  ASSERT_EQ(Run({"status", "--servers", list}), 0) << err_;
  std::string row = servers.server(1).address();
  row.append(21 - row.size(), ' ');
  EXPECT_THAT(
      out_,
      MatchesRegex("ADDRESS               STATE       PARTITIONS REPLICA BUSY "
                   "BATCH/S  P50/P99 ms CALLS INFLIGHT/MAX   RSS  UPTIME  "
                   "VERSION\n" +
                   row +
                   " ready       1                0   0%     0.0     0.0/0.0   "
                   "  0       0/1.5M +[0-9.]+[MG]      [0-9]s  [0-9.]+\n.*\n"));
}

// Compares with what the servers themselves say.
TEST_F(FleetCommandsTest, StatusShowsTheLoad) {
  FleetHarness servers(SmallGraph(), 2);
  JobSpec spec;
  spec.fanouts = {-1};
  spec.batch_size = 4;
  for (int i = 0; i < 20; ++i) {
    const v1::SampleRequest request = SampleRequestOf(spec, Columns(), 0);
    EXPECT_EQ(CallSample(*servers.Stub(0), request).status, absl::OkStatus());
  }
  const auto load_now = [&servers] {
    ::grpc::ClientContext context;
    v1::DescribeReply reply;
    EXPECT_TRUE(servers.Stub(0)->Describe(&context, {}, &reply).ok());
    return reply.load();
  };
  const v1::DescribeReply::Load before = load_now();
  const OrderedJson json =
      JsonOf({"status", "--server", servers.server(0).address(), "--json"});
  const v1::DescribeReply::Load after = load_now();
  ASSERT_EQ(json["servers"].size(), 1u);
  const OrderedJson& server = json["servers"][0];
  const double rate = server["batches_per_second"].get<double>();
  // The rate falls, because nothing is sampled any more.
  EXPECT_LE(rate, before.batches_per_second());
  EXPECT_GE(rate, after.batches_per_second());
  EXPECT_GT(rate, 0);
  EXPECT_EQ(server["sample_p50_seconds"], after.sample_p50_seconds());
  EXPECT_EQ(server["sample_p99_seconds"], after.sample_p99_seconds());
  EXPECT_GT(server["sampling_busy_ratio"].get<double>(), 0);
  EXPECT_EQ(server["sample_calls"], 0);
  EXPECT_GT(server["resident_bytes"].get<int64_t>(), 1 << 20);
  EXPECT_EQ(server["leaf_only"], false);
  EXPECT_EQ(server["failure"], "");
  EXPECT_FALSE(json.contains("missing_partitions"));
}

TEST_F(FleetCommandsTest, StatusOfAServerSucceedsWhenItIsReady) {
  FleetHarness servers(SmallGraph(), 2);
  const std::string address = servers.server(1).address();
  EXPECT_EQ(Run({"status", "--server", address}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\n" + address + " "));
  EXPECT_THAT(out_, Not(HasSubstr("leaf calls")));
  EXPECT_EQ(err_, "");
  EXPECT_TRUE(servers.server(1).Drain(absl::Seconds(20)));
  EXPECT_EQ(Run({"status", "--server", address}), 1);
  EXPECT_EQ(err_, "millrace status: the server " + address +
                      " is draining: it ends once its calls have ended\n"
                      "millrace status: use another replica, or wait until it "
                      "has been started again\n");
  servers.StopServer(1);
  EXPECT_EQ(Run({"status", "--server", address}), 1);
  EXPECT_THAT(err_, MatchesRegex("millrace status: the server " + address +
                                 " cannot be reached: .*\n"
                                 "millrace status: start it, or correct the "
                                 "address; .*/readyz say so\n"));
}

TEST_F(FleetCommandsTest, StatusOfAServerSaysThatItNeedsPeers) {
  ASSERT_TRUE(WriteGraph(SmallGraph(), 2, Path("parts")).ok());
  const auto alone =
      SamplerServer::Start(Store::Open(Path("parts"), {1}).value(),
                           ServerOptions())
          .value();
  EXPECT_EQ(Run({"status", "--server", alone->address()}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\n" + alone->address() +
                              ": ready for leaf calls only: it has some "
                              "partitions and no --peers\n"));
}

TEST_F(FleetCommandsTest, StatusOfAServerFailsIfAllOfItIsDamaged) {
  ASSERT_TRUE(WriteGraph(SmallGraph(), 1, Path("store")).ok());
  ServerOptions options;
  options.scrub_bytes_per_second = 1 << 30;
  const std::string file = NodePath(0, "node", "feature");
  auto store = Store::Open(Path("store")).value();
  std::fstream(Path("store/" + file)) << "not a .npy file";
  const auto server = SamplerServer::Start(std::move(store), options).value();
  EXPECT_TRUE(Eventually([&] { return !server->HasIntactPartition(); }));
  EXPECT_EQ(Run({"status", "--server", server->address()}), 1);
  EXPECT_THAT(out_, HasSubstr("\n" + server->address() +
                              ": partition 0 is damaged: " + file));
  EXPECT_THAT(err_,
              HasSubstr("millrace status: the server " + server->address() +
                        " has only damaged partitions: " + file));
  EXPECT_THAT(err_, HasSubstr("\nmillrace status: restore its store from a "
                              "copy and restart it\n"));
}

TEST_F(FleetCommandsTest, StatusOfAServerFailsIfItsGpuHasFailed) {
  FleetHarness servers(SmallGraph(), 1);
  ScriptedSampler server(servers.Stub(0), {});
  server.EditDescribe(
      [](v1::DescribeReply& reply) { reply.set_failure("a GPU has failed"); });
  EXPECT_EQ(Run({"status", "--server", server.address()}), 1);
  EXPECT_EQ(err_, "millrace status: the server " + server.address() +
                      " has failed: a GPU has failed\n"
                      "millrace status: restart it\n");
}

// Makes certificates.
class SecureStatusTest : public FleetCommandsTest {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    ReplaceFile(Path(name), text);
    return Path(name);
  }
  // Files with a certificate from our CA and its key.
  TlsOptions NewTls(const std::string& name) {
    const CertificatePem pem = ca_.Issue({});
    TlsOptions tls;
    tls.ca = Write("ca.pem", ca_.pem());
    tls.cert = Write(name + ".pem", pem.certificate);
    tls.key = Write(name + ".key", pem.key);
    return tls;
  }
  int StatusOf(const SamplerServer& server, std::vector<std::string> more) {
    more.insert(more.begin(),
                {"status", "--server", server.address(), "--timeout", "10"});
    return Run(more);
  }

  const TestCa ca_{"our CA"};
};

TEST_F(SecureStatusTest, NeedsTheRightTls) {
  ServerOptions options;
  options.tls = NewTls("server");
  options.clients.require_certificate = true;
  FleetHarness servers(SmallGraph(), 1, options);
  const TlsOptions own = NewTls("client");
  const std::string stranger = Write("other.pem", TestCa("another CA").pem());
  const std::vector<std::string> identity = {"--tls-cert", own.cert,
                                             "--tls-key", own.key};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), identity.begin(), identity.end());
    return more;
  };
  EXPECT_EQ(StatusOf(servers.server(0), with({"--tls-ca", own.ca})), 0) << err_;
  EXPECT_EQ(err_, "");
  struct Wrong {
    std::vector<std::string> tls;
    std::string why;
  };
  for (const Wrong& wrong : std::vector<Wrong>{
           {{}, "does it want TLS?"},
           {{"--tls-ca", own.ca}, "ended the handshake"},
           {with({"--tls-ca", stranger}),
            "is not signed by the CA in " + stranger},
           {with({"--tls-ca", own.ca, "--tls-server-name", "else.example"}),
            "is not for else.example"}}) {
    EXPECT_EQ(StatusOf(servers.server(0), wrong.tls), 1) << wrong.why;
    EXPECT_THAT(err_, HasSubstr(wrong.why));
    EXPECT_THAT(err_, HasSubstr(servers.server(0).address()));
  }
}

TEST_F(SecureStatusTest, SaysThatAServerHasNoTls) {
  FleetHarness servers(SmallGraph(), 1);
  const TlsOptions own = NewTls("client");
  EXPECT_EQ(StatusOf(servers.server(0), {"--tls-ca", own.ca}), 1);
  EXPECT_THAT(err_, HasSubstr("answers in plaintext"));
}

// A server that accepts connections and says nothing.
TEST_F(FleetCommandsTest, StatusOfAServerWaitsNoLongerThanItMay) {
  const SilentListener silent;
  const std::string address = "127.0.0.1:" + std::to_string(silent.port());
  const SteadyTime start = SteadyNow();
  EXPECT_EQ(Run({"status", "--server", address, "--timeout", "0.5"}), 1);
  EXPECT_GE(SteadyNow() - start, absl::Seconds(0.4));
  EXPECT_LT(SteadyNow() - start, absl::Seconds(20));
  EXPECT_THAT(err_, HasSubstr("millrace status: the server " + address +
                              " is silent: no answer within "));
}

TEST_F(FleetCommandsTest, StatusShowsWhoDoesNotAnswer) {
  FleetHarness servers(SmallGraph(), 1);
  const SilentListener silent;
  const std::string address = "127.0.0.1:" + std::to_string(silent.port());
  const std::string list = AddressesOf(servers, {0}) + "," + address;
  ASSERT_EQ(Run({"status", "--servers", list, "--timeout", "3", "--json"}), 0)
      << err_;
  const OrderedJson server = OrderedJson::parse(out_)["servers"][1];
  EXPECT_EQ(server["address"], address);
  EXPECT_EQ(server["state"], "unreachable");
  EXPECT_THAT(server["error"].get<std::string>(),
              HasSubstr("no answer within "));
}

TEST_F(FleetCommandsTest, StatusCanRequireAllServers) {
  FleetHarness first(SmallGraph(), 1);
  FleetHarness second(SmallGraph(), 1);
  const std::string other = second.server(0).address();
  const std::string list = AddressesOf(first, {0}) + "," + other;
  EXPECT_EQ(Run({"status", "--servers", list, "--all", "--wait", "20s"}), 0)
      << err_;
  EXPECT_TRUE(second.server(0).Drain(absl::Seconds(20)));
  EXPECT_EQ(Run({"status", "--servers", list}), 0) << err_;
  EXPECT_EQ(Run({"status", "--servers", list, "--all", "--wait", "1s"}), 1);
  EXPECT_THAT(err_, HasSubstr("millrace status: 1 of 2 servers is not ready: " +
                              other + "\nmillrace status: the reason is "));
  second.StopServer(0);
  EXPECT_EQ(Run({"status", "--servers", list, "--all"}), 1);
  EXPECT_EQ(Run({"status", "--server", other, "--all"}), 2);
  EXPECT_EQ(Run({"status", "--servers", list, "--all", "--watch"}), 2);
}

TEST_F(FleetCommandsTest, StatusIsOfOneServerOrOfAFleet) {
  EXPECT_EQ(
      Run({"status", "--server", "127.0.0.1:1", "--servers", "127.0.0.1:1"}),
      2);
  for (const char* list : {"127.0.0.1:1,127.0.0.1:2", "@list", "127.0.0.1"}) {
    EXPECT_EQ(Run({"status", "--server", list}), 2) << list;
    EXPECT_THAT(err_, HasSubstr("--server: ")) << list;
  }
  EXPECT_EQ(
      Run({"status", "--server", "127.0.0.1:1", "--watch", "--wait", "1s"}), 2);
  EXPECT_EQ(Run({"status", "--server", "127.0.0.1:1", "--watch", "0"}), 2);
  EXPECT_THAT(err_, HasSubstr("--watch \"0\" is not from 100ms to 1h\n"));
}

TEST_F(FleetCommandsTest, StatusFailsWithoutAPartition) {
  FleetHarness servers(SmallGraph(), 3);
  EXPECT_EQ(Run({"status", "--servers", AddressesOf(servers, {1})}), 1);
  EXPECT_THAT(err_, HasSubstr("millrace status: no ready server for partition "
                              "0, 2 of 3\nmillrace status: start one: "
                              "millrace-server --store STORE --partition 0\n"));
  EXPECT_EQ(Run({"status", "--json", "--wait", "300ms", "--servers",
                 AddressesOf(servers, {0, 2})}),
            1);
  EXPECT_THAT(out_, HasSubstr("\"missing_partitions\":[1]"));
}

TEST_F(FleetCommandsTest, ServersThatDrainServeNoPartition) {
  FleetHarness servers(SmallGraph(), 2);
  EXPECT_TRUE(servers.server(1).Drain(absl::Seconds(20)));
  EXPECT_EQ(
      Run({"status", "--servers", AddressesOf(servers, {0, 1}), "--json"}), 1);
  const OrderedJson json = OrderedJson::parse(out_);
  EXPECT_EQ(json["servers"][1]["state"], "draining");
  EXPECT_EQ(json["missing_partitions"], OrderedJson({1}));
}

TEST_F(FleetCommandsTest, ReplicasAreNumberedInTheOrderOfTheList) {
  FleetHarness servers(SmallGraph(), 2);
  const auto second =
      SamplerServer::Start(servers.store(), ServerOptions()).value();
  const OrderedJson json =
      JsonOf({"status", "--json", "--servers",
              AddressesOf(servers, {0, 1}) + "," + second->address()});
  EXPECT_EQ(json["servers"][0]["replica"], 0);
  EXPECT_EQ(json["servers"][1]["replica"], 0);
  EXPECT_EQ(json["servers"][2]["replica"], 1);
  EXPECT_EQ(json["servers"][2]["partitions"], OrderedJson({0, 1}));
}

// Nobody listens at these ports.
TEST_F(FleetCommandsTest, StatusSaysWhyNoServerAnswers) {
  EXPECT_EQ(Run({"status", "--servers", "127.0.0.1:1", "--timeout", "300ms"}),
            1);
  EXPECT_THAT(out_, HasSubstr("127.0.0.1:1           unreachable "));
  EXPECT_THAT(err_,
              HasSubstr("millrace status: the server does not answer\n"
                        "millrace status: the reason is shown "
                        "beside each; start the servers, or correct the list"));
  EXPECT_EQ(Run({"status", "--servers", "127.0.0.1:1,127.0.0.1:2", "--timeout",
                 "0.3", "--json"}),
            1);
  EXPECT_THAT(err_, HasSubstr("none of the 2 servers answers\n"));
  const OrderedJson json = OrderedJson::parse(out_);
  EXPECT_EQ(json["servers"][1]["state"], "unreachable");
  EXPECT_NE(json["servers"][1]["error"], "");
}

TEST_F(FleetCommandsTest, StatusSaysThatAListHasNoServers) {
  std::ofstream(Path("list")) << "# nobody\n";
  EXPECT_EQ(
      Run({"status", "--servers", "@" + Path("list"), "--timeout", "0.2"}), 1);
  EXPECT_THAT(err_, Not(HasSubstr("none of the 0 servers")));
  EXPECT_THAT(err_, HasSubstr(Path("list")));
}

TEST_F(FleetCommandsTest, StatusWaitsForDurations) {
  for (const char* wait : {"-1s", "soon"}) {
    EXPECT_EQ(Run({"status", "--servers", "127.0.0.1:1", "--wait", wait}), 2);
    EXPECT_THAT(err_, HasSubstr("--wait \"" + std::string(wait) +
                                "\" is not a duration"));
  }
  for (const char* timeout : {"0", "99ms", "3601"}) {
    EXPECT_EQ(Run({"status", "--servers", "127.0.0.1:1", "--timeout", timeout}),
              2);
    EXPECT_THAT(err_, HasSubstr("--timeout \"" + std::string(timeout) +
                                "\" is not from 100ms to 1h\n"));
  }
  EXPECT_EQ(Run({"status"}), 2);
}

TEST_F(FleetCommandsTest, BenchCountsWhatItGets) {
  const std::string store = Stored(SmallGraph());
  const OrderedJson json =
      JsonOf({"bench", "--store", store, "--fanouts", "0", "--batch-size", "3",
              "--batches", "5", "--json"});
  // Batches of 3 and 1 in turn; of each node 4 bytes of local ids, and so on.
  EXPECT_EQ(json["batches"], 5);
  EXPECT_EQ(json["nodes"], 3 + 1 + 3 + 1 + 3);
  EXPECT_EQ(json["edges"], 0);
  EXPECT_GT(json["bytes"].get<int64_t>(), 11 * (8 + 12 + 8));
  EXPECT_FALSE(json.contains("received_bytes"));
  EXPECT_GT(json["seconds"].get<double>(), 0);
  EXPECT_GE(json["seconds"].get<double>(), json["wait_seconds"].get<double>());
  EXPECT_GE(json["cpu_seconds"].get<double>(), 0);
  EXPECT_GT(json["peak_rss_bytes"].get<int64_t>(), 1 << 20);
  // Seeds 2 and 6 have a neighbour each.
  const std::string seeds = Npy("seeds", std::vector<int64_t>{2, 6});
  EXPECT_EQ(
      JsonOf({"bench", "--store", store, "--fanouts", "-1", "--seeds-file",
              seeds, "--batches", "3", "--json"})["edges"],
      6);
}

TEST_F(FleetCommandsTest, BenchKeepsToTheRateGiven) {
  const OrderedJson json =
      JsonOf({"bench", "--store", Stored(SmallGraph()), "--fanouts", "0",
              "--batches", "5", "--rate", "20", "--json"});
  EXPECT_EQ(json["batches"], 5);
  // The first batch is due at once, the last one after 0.2 s.
  EXPECT_GE(json["seconds"].get<double>(), 0.2);
}

TEST_F(FleetCommandsTest, BenchPrintsRates) {
  ASSERT_EQ(Run({"bench", "--store", Stored(SmallGraph()), "--fanouts", "-1",
                 "--batches", "4"}),
            0)
      << err_;
  EXPECT_THAT(out_, MatchesRegex("batches          4\n"
                                 "batches/s        [0-9.]+\n"
                                 "edges/s          [0-9.e+]+\n"
                                 "GB/s             [0-9.]+\n"
                                 "CPU s per batch  [0-9.]+ \\(this process\\)\n"
                                 "MB per batch     0.00\n"
                                 "peak RSS         0.[0-9]+ GB\n"));
}

TEST_F(FleetCommandsTest, BenchOfAFleetCountsItsCalls) {
  FleetHarness servers(SmallGraph(), 2);
  const std::vector<std::string> args = {
      "bench",     "--servers", "@" + servers.list(), "--fanouts", "0",
      "--batches", "3"};
  std::vector<std::string> more = args;
  more.push_back("--json");
  const OrderedJson json = JsonOf(more);
  EXPECT_GT(json["received_bytes"].get<int64_t>(), 0);
  // The home of a batch and the other owner of its rows are asked.
  EXPECT_GE(json["calls"].get<int64_t>(), 3);
  EXPECT_EQ(json["hedged_calls"], 0);
  ASSERT_EQ(Run(args), 0) << err_;
  EXPECT_THAT(out_,
              HasSubstr("\nMB received      0.00 (total)\ncalls            "));
  EXPECT_THAT(out_, HasSubstr(", 0 of them hedged\n"));
}

// The rates are of one run: seconds follow from the batches per second.
TEST_F(FleetCommandsTest, BenchsRatesFitTogether) {
  TestGraph graph = SmallGraph();
  graph.types[0].feature = RampFeature(8, 50000);
  const std::string store = Stored(graph);
  ASSERT_EQ(Run({"bench", "--store", store, "--fanouts", "-1", "--batch-size",
                 "4", "--batches", "40"}),
            0)
      << err_;
  const auto number = [&](const std::string& name) {
    const size_t at = out_.find(name);
    EXPECT_NE(at, std::string::npos) << name;
    return std::stod(out_.substr(at + name.size()));
  };
  const double batches = number("batches/s");
  const double mb = number("MB per batch");
  // All four seeds and up to all other nodes, of 200 kB each.
  EXPECT_GT(mb, 4 * 0.2);
  EXPECT_LT(mb, 8 * 0.2 + 0.01);
  EXPECT_NEAR(number("GB/s"), batches * mb / 1000, 0.02 * batches * mb / 1000);
  // The lists of seeds 0, 1, 4 and 7 have 9 edges.
  EXPECT_NEAR(number("edges/s"), 9 * batches, 0.02 * 9 * batches);
  EXPECT_LT(number("CPU s per batch"), 16 / batches);
}

TEST_F(FleetCommandsTest, BenchOfAFleetShowsTheMegabytesReceived) {
  TestGraph graph = SmallGraph();
  graph.types[0].feature = RampFeature(8, 50000);
  FleetHarness servers(graph, 1);
  // A batch of all four seeds has 4 rows of 200 kB.
  ASSERT_EQ(Run({"bench", "--servers", "@" + servers.list(), "--fanouts", "0",
                 "--batches", "5", "--prefetch-batches", "1"}),
            0)
      << err_;
  const size_t at = out_.find("MB received    ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::stod(out_.substr(at + 15)), 5.5 * 4 * 0.2, 0.6 * 4 * 0.2);
}

TEST_F(FleetCommandsTest, BenchCountsItsOwnTimeAlone) {
  const double before = ProcessCpuSeconds();
  EXPECT_GT(before, 0);
  const OrderedJson json =
      JsonOf({"bench", "--store", Stored(SmallGraph()), "--fanouts", "-1",
              "--batches", "2", "--json"});
  EXPECT_LE(json["cpu_seconds"].get<double>(), ProcessCpuSeconds() - before);
}

TEST_F(FleetCommandsTest, BenchFetchesNoMoreThanFitsInMemory) {
  const std::vector<std::string> args = {
      "bench",      "--store",   Stored(SmallGraph()),
      "--fanouts",  "-1",        "--prefetch-batches",
      "1000000000", "--batches", "1073741824"};
  std::vector<std::string> more = args;
  more.insert(more.end(), {"--prefetch-bytes", "1000000T"});
  EXPECT_EQ(Run(more), 1);
  EXPECT_THAT(err_, HasSubstr("prefetching 1000000000 batches of "));
}

TEST_F(FleetCommandsTest, UpNeedsTheServerBesideIt) {
  EXPECT_EQ(Run({"up", Stored(SmallGraph())}), 1);
  EXPECT_THAT(err_, HasSubstr("/millrace-server does not exist\nmillrace up: "
                              "build or install millrace-server beside"));
  EXPECT_EQ(Run({"up", Path("graph"), "--servers", "1001"}), 2);
}

TEST(PartitionsOfServerTest, AllPartitionsAreServed) {
  EXPECT_EQ(PartitionsOfServer(0, 1, 3), "0,1,2");
  EXPECT_EQ(PartitionsOfServer(0, 2, 5), "0,1");
  EXPECT_EQ(PartitionsOfServer(1, 2, 5), "2,3,4");
  EXPECT_EQ(PartitionsOfServer(2, 3, 3), "2");
  // More servers than partitions are replicas, in turn.
  EXPECT_EQ(PartitionsOfServer(0, 5, 2), "0");
  EXPECT_EQ(PartitionsOfServer(3, 5, 2), "1");
  EXPECT_EQ(PartitionsOfServer(4, 5, 2), "0");
}

}  // namespace
}  // namespace millrace::testing
