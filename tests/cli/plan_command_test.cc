// SPDX-License-Identifier: Apache-2.0
// millrace plan. plan_test.py compares it with real stores and servers.
#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/batch_size.h"
#include "client/open_source.h"
#include "tests/cli/command_runner.h"
#include "tests/support/watched_source.h"

namespace millrace::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class PlanCommandTest : public CommandTest {
 protected:
  OrderedJson Plan(const std::vector<std::string>& more) {
    std::vector<std::string> args = {"plan", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    return JsonOf(args);
  }
};

const std::vector<std::string> kGraph = {"--nodes", "1000",       "--edges",
                                         "5000",    "--features", "8"};

std::vector<std::string> With(std::vector<std::string> args,
                              const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

TEST_F(PlanCommandTest, BoundsBatchesByFanoutsAndByTheGraph) {
  const auto batch = [&](const std::string& fanouts, const std::string& size) {
    return Plan(With(kGraph, {"--fanouts", fanouts, "--batch-size", size,
                              "--batches-per-second", "1"}))["batch"];
  };
  // 3 seeds, 6 and 24 neighbours; a node has 32 bytes of features and 8 of ids,
  // a seed a label, an edge 4.
  EXPECT_EQ(batch("2,4", "3"),
            OrderedJson::parse(R"({"basis": "bound", "nodes": 33.0,
                                   "edges": 30.0, "bytes": 1464.0})"));
  // All 1000 nodes after one hop: the other lists draw nothing new.
  EXPECT_EQ(batch("10,10", "100")["nodes"], 1000.0);
  EXPECT_EQ(batch("10,10", "100")["edges"], 5000.0);
  EXPECT_EQ(batch("-1", "3")["nodes"], 1000.0);
  EXPECT_EQ(batch("-1", "3")["edges"], 5000.0);
  EXPECT_EQ(Plan(With(kGraph, {"--fanouts", "10,10", "--batch-size", "100",
                               "--disjoint", "--batches-per-second",
                               "1"}))["batch"]["nodes"],
            11100.0);
}

TEST_F(PlanCommandTest, MeasuresBatchesOfAStore) {
  const std::string store = Stored(RichGraph(), 2);
  const std::vector<std::string> job = {
      "--type",       "paper", "--fanouts",   "2,2",
      "--batch-size", "2",     "--no-shuffle"};
  const OrderedJson plan = Plan(With(
      {store, "--batches-per-second", "4", "--trainers", "2", "--batches", "1"},
      job));
  const OrderedJson bench = JsonOf(
      With({"bench", "--store", store, "--batches", "1", "--json"}, job));
  EXPECT_EQ(plan["batch"]["basis"], "measured");
  for (const char* what : {"nodes", "edges", "bytes"}) {
    EXPECT_EQ(plan["batch"][what], bench[what].get<double>()) << what;
  }
  const OrderedJson inspect = JsonOf({"inspect", store, "--json"});
  EXPECT_EQ(plan["store"]["bytes"], inspect["bytes"]);
  EXPECT_EQ(plan["store"]["parts"], 2);
  // A report tells the same, but not what batches hold.
  std::ofstream(Path("report")) << inspect.dump();
  const OrderedJson told = Plan(
      With({"--report", Path("report"), "--batches-per-second", "4"}, job));
  EXPECT_EQ(told["batch"]["basis"], "bound");
  EXPECT_GE(told["batch"]["nodes"], plan["batch"]["nodes"]);
  EXPECT_EQ(told["store"]["parts"], 2);
}

// The CPU time of batches that are made and not counted would count as well.
TEST_F(PlanCommandTest, MakesNoBatchesThatItDoesNotMeasure) {
  SourceOptions options;
  options.store = Stored(SmallGraph());
  std::atomic<int> made = 0;
  WatchedSource source(OpenSource(options).value(),
                       [&made](const ResolvedJob&, const BatchRequest&) {
                         ++made;
                         return absl::OkStatus();
                       });
  JobSpec job;
  job.fanouts = {-1};
  job.batch_size = 1;  // 4 batches
  for (const auto& [batches, expected] :
       {std::pair(2u, 4), std::pair(10u, 8)}) {
    made = 0;
    EXPECT_TRUE(MeasureBatch(source, job, Columns(), batches).ok());
    EXPECT_EQ(made, expected) << batches;
  }
}

TEST_F(PlanCommandTest, LdgTakesAFifthOfTheTimeOfMetis) {
  const auto partition = [&](const std::string& edges) {
    return Plan({"--nodes", "1000000", "--edges", edges, "--fanouts", "10",
                 "--batches-per-second", "1", "--parts", "2"})["partition"];
  };
  // METIS cannot number more than 2^30 edges.
  const OrderedJson metis = partition("1073741824");
  const OrderedJson ldg = partition("1073741825");
  EXPECT_EQ(metis["method"], "metis");
  EXPECT_EQ(ldg["method"], "ldg");
  EXPECT_NEAR(metis["seconds"].get<double>(), 1.2e-6 * 0x1p30, 1);
  EXPECT_NEAR(ldg["seconds"].get<double>(), 1.2e-6 * 0x1p30 / 5, 1);
}

TEST_F(PlanCommandTest, ChoosesPartitionsByMemoryAndReplicasByLoad) {
  // 4 TB of features.
  const std::vector<std::string> graph = {
      "--nodes",   "10000000000", "--edges",       "0", "--features", "100",
      "--fanouts", "10",          "--host-memory", "1T"};
  OrderedJson plan = Plan(With(graph, {"--batches-per-second", "1"}));
  const double need = plan["server"]["memory_bytes"];
  EXPECT_LE(need, 0.8 * (1ull << 40));
  const int parts = plan["store"]["parts"];
  EXPECT_EQ(plan["replicas"], 1);
  EXPECT_THAT(plan["notes"].dump(), HasSubstr("one replica"));
  plan = Plan(With(graph, {"--batches-per-second", "1", "--parts",
                           std::to_string(parts - 1)}));
  EXPECT_THAT(plan["notes"].dump(), HasSubstr("does not fit in 80 %"));

  // A batch has 11,264 nodes of 408 bytes; 10 Gbit/s are used to 70 %.
  const std::vector<std::string> job = {
      "--nodes", "1000000",   "--edges", "100000000",    "--features",
      "100",     "--fanouts", "10",      "--host-cores", "1000"};
  plan = Plan(With(job, {"--trainers", "1000", "--step-seconds", "1"}));
  EXPECT_EQ(plan["batches_per_second"], 1000.0);
  const double bytes = plan["batch"]["bytes"];
  EXPECT_EQ(plan["replicas"], std::ceil(8000 * bytes / 7e9));
  EXPECT_NEAR(plan["trainer"]["bits_per_second"], 8 * bytes, 1);
  plan = Plan(With(
      job, {"--trainers", "1000", "--step-seconds", "1", "--replicas", "2"}));
  EXPECT_EQ(plan["servers"], 2);
  EXPECT_THAT(plan["notes"].dump(), HasSubstr("2 servers are too few: their "
                                              "network would serve"));

  // Two servers are busy to 67.5 %, so one would need 135 %.
  const std::string rate = std::to_string(13.5e9 / (8 * bytes));
  const OrderedJson two = Plan(With(job, {"--batches-per-second", rate}));
  EXPECT_EQ(two["replicas"], 2);
  EXPECT_THAT(two["notes"].dump(),
              HasSubstr("the others of its partition cannot keep up; use 3 "
                        "replicas"));
  EXPECT_THAT(Plan(With(job, {"--batches-per-second", rate, "--replicas",
                              "3"}))["notes"]
                  .dump(),
              Not(HasSubstr("keep up")));
}

TEST_F(PlanCommandTest, TakesBatchesMeasuredElsewhere) {
  const OrderedJson batch = Plan(With(
      kGraph, {"--fanouts", "2,4", "--batches-per-second", "1", "--batch-size",
               "3", "--batch-nodes", "11", "--batch-edges", "20"}))["batch"];
  EXPECT_EQ(batch["basis"], "given");
  EXPECT_EQ(batch["nodes"], 11.0);
  EXPECT_EQ(batch["edges"], 20.0);
  EXPECT_EQ(batch["bytes"], 488.0);  // a third
}

TEST_F(PlanCommandTest, PrintsText) {
  ASSERT_EQ(Run(With(With({"plan"}, kGraph),
                     {"--fanouts", "2,4", "--batch-size", "3", "--replicas",
                      "2", "--batches-per-second", "1"})),
            0)
      << err_;
  EXPECT_THAT(
      out_,
      AllOf(HasSubstr("graph        1000 nodes, 5000 edges\n"),
            HasSubstr("batch        at most 33 nodes, 30 edges, 1.4 KiB (give "
                      "STORE to measure it)\n"),
            HasSubstr("servers      2: 1 partition x 2 replicas\n"),
            HasSubstr("another machine (docs/performance.md, section 4)\n"),
            Not(HasSubstr("partition  ")), Not(HasSubstr("note: "))));
}

TEST_F(PlanCommandTest, SaysWhatIsMissing) {
  const auto fails = [&](const std::vector<std::string>& args, int status,
                         const std::string& what) {
    EXPECT_EQ(Run(With({"plan"}, args)), status);
    EXPECT_THAT(err_, HasSubstr(what));
  };
  const std::vector<std::string> job = {"--fanouts", "2",
                                        "--batches-per-second", "1"};
  fails(job, 2, "nothing says how large the graph is");
  fails(With(With(kGraph, job), {"--report", "x"}), 2, "more than once");
  fails(With(kGraph, {"--fanouts", "2"}), 2, "the load is not known");
  fails(With(With(kGraph, job), {"--step-seconds", "1"}), 2, "the load is not");
  fails(With(kGraph, {"--batches-per-second", "1"}), 2, "--fanouts");
  fails(With(With(kGraph, job), {"--direction", "out"}), 1, "out");
  fails(With(kGraph, {"--method", "walk", "--walks", "2", "--walk-length", "2",
                      "--batches-per-second", "1"}),
        1, "give a dataset or store");
  fails(With({Path("nothing")}, job), 1, Path("nothing"));
  std::ofstream(Path("report")) << "{\"node_types\": 3}";
  fails(With({"--report", Path("report")}, job), 1,
        "is not what `millrace inspect --json` prints");
  for (const char* parts : {"0", "-1", "65536", "2.5", "\"2\""}) {
    std::ofstream(Path("report"))
        << R"({"node_types": [], "relations": [], "method": "hash", "parts": )"
        << parts << "}";
    fails(With({"--report", Path("report")}, job), 1,
          Path("report") + ": \"parts\" is " + parts +
              "; it must be 1 to 65535\n");
  }
}

}  // namespace
}  // namespace millrace::testing
