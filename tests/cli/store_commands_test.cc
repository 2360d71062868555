// SPDX-License-Identifier: Apache-2.0
// millrace inspect, verify, split and partition.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/graph/store.h"
#include "tests/cli/command_runner.h"

namespace millrace::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using StoreCommandsTest = CommandTest;

// The members of a JSON object that have these names.
OrderedJson Only(const OrderedJson& json,
                 const std::vector<std::string>& names) {
  OrderedJson some;
  for (const std::string& name : names) some[name] = json.at(name);
  return some;
}

// Partition 0 has the nodes 0, 3 and 6, 1 has 1, 4 and 7, and 2 has 2 and 5.
// Edges count where their destinations are.
TEST_F(StoreCommandsTest, InspectDescribesPartitions) {
  const OrderedJson json =
      JsonOf({"inspect", Stored(SmallGraph(), 3), "--json"});
  EXPECT_EQ(json["path"], Path("graph"));
  EXPECT_EQ(json["parts"], 3);
  ASSERT_EQ(json["partitions"].size(), 3u);
  const std::vector<int> nodes = {3, 3, 2}, edges = {4, 6, 2};
  uint64_t bytes = 0, features = 0;
  for (int part = 0; part < 3; ++part) {
    const OrderedJson& one = json["partitions"][part];
    EXPECT_EQ(one["partition"], part);
    EXPECT_EQ(one["nodes"], nodes[part]);
    EXPECT_EQ(one["edges"], edges[part]);
    bytes += one["bytes"].get<uint64_t>();
    features += one["feature_bytes"].get<uint64_t>();
    // A header of 128 bytes, and 3 floats for each node.
    EXPECT_EQ(one["feature_bytes"], 128 + 12 * nodes[part]);
  }
  EXPECT_EQ(json["feature_bytes"], features);
  EXPECT_GT(json["bytes"].get<uint64_t>(), bytes);  // and the maps of ids
  EXPECT_DOUBLE_EQ(json["balance"]["nodes"].get<double>(), 3 / (8 / 3.0));
  EXPECT_DOUBLE_EQ(json["balance"]["edges"].get<double>(), 6 / (12 / 3.0));
  EXPECT_EQ(json["edge_cut"]["edges"], 8);
  EXPECT_DOUBLE_EQ(json["edge_cut"]["fraction"].get<double>(), 8 / 12.0);
}

TEST_F(StoreCommandsTest, InspectDescribesTypesRelationsAndSplits) {
  TestGraph graph = RichGraph();
  graph.types[0].label = Array::Adopt(std::vector<int64_t>{0, 2, -1, 0, 100});
  EdgeSplitColumns pairs;
  pairs.relation = 1;
  pairs.name = "pairs";
  pairs.src = Array::Adopt(std::vector<int64_t>{0, 1, 2});
  pairs.dst = Array::Adopt(std::vector<int64_t>{3, 4, 5});
  pairs.time = Array::Adopt(std::vector<int64_t>{7, 8, 9});
  graph.edge_splits = {pairs};
  const OrderedJson json = JsonOf({"inspect", Stored(graph), "--json"});
  const OrderedJson& types = json["node_types"];
  ASSERT_EQ(types.size(), 2u);
  EXPECT_EQ(types[0], OrderedJson::parse(R"({
      "name": "author", "count": 5, "feature": null,
      "label": {"dtype": "int64", "shape": [], "labelled": 4, "classes": 101,
                "largest": 100, "largest_node": 4, "sparse": true},
      "time": false, "hotness": false})"));
  EXPECT_EQ(types[1], OrderedJson::parse(R"({
      "name": "paper", "count": 7,
      "feature": {"dtype": "float32", "shape": [4]},
      "label": {"dtype": "float32", "shape": [2], "labelled": 7},
      "time": true, "hotness": false})"));
  const OrderedJson& relations = json["relations"];
  ASSERT_EQ(relations.size(), 3u);
  EXPECT_EQ(relations[0], OrderedJson::parse(R"({
      "name": "author__writes__paper", "edges": 7, "max_edge_id": 6,
      "in": true, "out": true, "weight": true, "time": "neighbor",
      "type": false, "feature": {"dtype": "float32", "shape": [2]}})"));
  EXPECT_EQ(Only(relations[1], {"name", "time", "type", "weight", "feature"}),
            OrderedJson::parse(R"({
      "name": "paper__cites__paper", "time": "neighbor", "type": true,
      "weight": false, "feature": null})"));
  EXPECT_EQ(Only(relations[2], {"name", "in", "out", "time"}),
            OrderedJson::parse(R"({
      "name": "author__knows__author", "in": true, "out": false,
      "time": "edge"})"));
  EXPECT_EQ(json["splits"], OrderedJson::parse(R"([
      {"type": "paper", "name": "train", "count": 3, "part_counts": [3]},
      {"type": "author", "name": "test", "count": 2, "part_counts": [2]},
      {"type": "paper__cites__paper", "name": "pairs", "count": 3,
       "part_counts": [3], "edge_id": false, "time": true, "edge_type": false,
       "label": null, "negatives": 0}])"));
}

TEST_F(StoreCommandsTest, InspectPrintsText) {
  ASSERT_EQ(Run({"inspect", Stored(SmallGraph(), 3)}), 0) << err_;
  const std::string text = out_;
  const OrderedJson json = JsonOf({"inspect", Path("graph"), "--json"});
  char kib[32];
  std::snprintf(kib, sizeof(kib), "%.1f KiB",
                json["bytes"].get<double>() / 1024);
  EXPECT_THAT(text,
              StartsWith(Path("graph") + ": 3 partitions, " + kib +
                         " (features 480 bytes)\nuuid " +
                         json["uuid"].get<std::string>() + "\nfingerprint " +
                         json["fingerprint"].get<std::string>() +
                         "\ndataset fingerprint "));
  EXPECT_THAT(text, HasSubstr(R"(
node types
  node: 8 nodes, feature float32 [3], label int64, labels of 8 nodes in 3 classes, hotness
relations
  node__to__node: 12 edges, in, out
splits
  node train: 4 seeds
  node test: 2 seeds
partitions
  0: 3 nodes, 4 edges, )"));
  EXPECT_THAT(text, HasSubstr("\n  2: 2 nodes, 2 edges, "));
  EXPECT_THAT(text, HasSubstr("\nbalance (largest / mean) nodes 1.125, edges "
                              "1.500\nedge cut 8 edges, 66.67%\n"));
}

TEST_F(StoreCommandsTest, InspectPrintsColumnsOfRelations) {
  TestGraph graph = RichGraph();
  graph.types[0].label = Array::Adopt(std::vector<int64_t>{0, 2, -1, 0, 100});
  graph.types[1].feature = RampFeature(7, 50000);
  EdgeSplitColumns pairs;
  pairs.relation = 1;
  pairs.name = "pairs";
  pairs.src = pairs.dst = Array::Adopt(std::vector<int64_t>{0, 1, 2});
  graph.edge_splits = {pairs};
  ASSERT_EQ(Run({"inspect", Stored(graph)}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr(": 1 partition, 1.3 MiB (features 1.3 MiB)\n"));
  EXPECT_THAT(out_, HasSubstr(R"(
  author: 5 nodes, label int64, labels of 4 nodes in 101 classes
    note: most of the 101 classes of author have no node: the largest label is 100, of node 4; if it stands for nodes without a label, use -1 for them
  paper: 7 nodes, feature float32 [50000], label float32 [2], labels of 7 nodes, time
relations
  author__writes__paper: 7 edges, in, out, weight, time of neighbours, feature float32 [2]
  paper__cites__paper: 7 edges, in, out, time of neighbours, type
  author__knows__author: 5 edges, in, time of edges
splits
  paper train: 3 seeds
  author test: 2 seeds
  paper__cites__paper pairs: 3 seeds
)"));
}

TEST_F(StoreCommandsTest, InspectOfNothingIsBalanced) {
  TestGraph graph;
  graph.types = {{.count = 3}};
  graph.relations = {{}};
  const OrderedJson json = JsonOf({"inspect", Stored(graph, 3), "--json"});
  EXPECT_EQ(json["balance"],
            OrderedJson::parse(R"({"nodes": 1.0, "edges": 1.0})"));
  EXPECT_EQ(json["edge_cut"],
            OrderedJson::parse(R"({"edges": 0, "fraction": 0.0})"));
}

TEST_F(StoreCommandsTest, VerifyTellsIntactFromDamagedStores) {
  const std::string store = Stored(SmallGraph());
  ASSERT_EQ(Run({"verify", store}), 0) << err_;
  EXPECT_EQ(out_, store + " is intact\n");
  EXPECT_EQ(Run({"verify", Path("nothing")}), 1);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr(Path("nothing")));
}

// A host that has the files of one partition, besides store.json and splits/.
TEST_F(StoreCommandsTest, InspectAndVerifyShowWhatAHostHas) {
  const OrderedJson whole =
      JsonOf({"inspect", Stored(RichGraph(), 3), "--json"});
  for (const int gone : {0, 2}) {
    std::filesystem::remove_all(Path("graph/" + PartName(gone)));
  }
  const std::string store = Path("graph");
  OrderedJson json = JsonOf({"inspect", store, "--json"});
  EXPECT_EQ(json["partitions"], OrderedJson::array({whole["partitions"][1]}));
  EXPECT_EQ(json["balance"], nullptr);
  EXPECT_EQ(json["edge_cut"], nullptr);
  EXPECT_EQ(json["bytes"], whole["bytes"]);
  EXPECT_EQ(json["splits"], whole["splits"]);
  ASSERT_EQ(Run({"inspect", store}), 0) << err_;
  EXPECT_THAT(
      out_,
      AllOf(HasSubstr("\npartitions on this host (1 of 3)\n  1: "),
            HasSubstr("labels of 3 nodes here, "), Not(HasSubstr("cut"))));

  EXPECT_EQ(Run({"verify", store}), 1);
  EXPECT_EQ(err_, "millrace verify: partitions 0, 2 of " + store +
                      " are not on this host: it has 1\n"
                      "millrace verify: check what is here with --partition 1, "
                      "or copy the rest from a host that has it\n");
  ASSERT_EQ(Run({"verify", store, "--partition", "1"}), 0) << err_;
  EXPECT_EQ(out_, "partition 1 of " + store + " is intact\n");
  EXPECT_EQ(Run({"verify", store, "--partition", "2"}), 1);
  EXPECT_THAT(err_, HasSubstr("partition 2 of " + store + " is not on this"));
  EXPECT_EQ(Run({"verify", store, "--partition", "3"}), 1);
  EXPECT_THAT(err_, HasSubstr("no partition 3 in "));
  EXPECT_EQ(Run({"verify", store, "--partition", "one"}), 2);
  EXPECT_THAT(err_, HasSubstr("--partition one: "));

  // A file that is missing in a partition that is here is damage.
  std::filesystem::remove(store + "/" + LookupPath(1, "paper"));
  EXPECT_EQ(Run({"verify", store, "--partition", "1"}), 1);
  EXPECT_THAT(err_, AllOf(HasSubstr("part-00001/lookup/paper.npy"),
                          HasSubstr("damaged")));
}

TEST_F(StoreCommandsTest, SplitAddsNodes) {
  const std::string store = Stored(SmallGraph());
  const std::string ids = Npy("ids", std::vector<int64_t>{5, 2, 7});
  ASSERT_EQ(Run({"split", store, "--name", "few", "--ids", ids}), 0) << err_;
  EXPECT_EQ(out_, "split few: 3 nodes\n");
  EXPECT_EQ(JsonOf({"split", store, "--name", "more", "--ids", ids, "--type",
                    "node", "--json"}),
            OrderedJson::parse(R"({"count": 3, "name": "more"})"));
  const Manifest manifest = Store::Open(store).value()->manifest();
  ASSERT_EQ(manifest.splits.size(), 4u);
  EXPECT_EQ(manifest.splits[2].name, "few");
}

TEST_F(StoreCommandsTest, SplitAddsEdgesInOneOfThreeWays) {
  const std::string store = Stored(SmallGraph());
  const std::string ids = Npy("ids", std::vector<int64_t>{5, 2, 7});
  const std::string pairs =
      Npy("pairs", std::vector<int64_t>{0, 1, 2, 3}, {2, 2});
  const std::string times = Npy("times", std::vector<int64_t>{8, 9});
  const auto split = [&](const std::string& name,
                         std::vector<std::string> more) {
    more.insert(more.begin(), {"split", store, "--name", name});
    return Run(std::move(more));
  };
  EXPECT_EQ(split("a", {"--all"}), 0) << err_;
  EXPECT_EQ(out_, "split a: 12 edges\n");
  EXPECT_EQ(split("b", {"--pairs", pairs, "--times", times, "--labels", times,
                        "--edge-types", times, "--negatives", pairs}),
            0)
      << err_;
  EXPECT_EQ(out_, "split b: 2 edges\n");
  EXPECT_EQ(split("c", {"--type", "node__to__node", "--ids", ids}), 0) << err_;
  EXPECT_EQ(out_, "split c: 3 edges\n");
  const Manifest manifest = Store::Open(store).value()->manifest();
  ASSERT_EQ(manifest.edge_splits.size(), 3u);
  EXPECT_TRUE(manifest.edge_splits[1].has_time);
  EXPECT_TRUE(manifest.edge_splits[1].has_edge_type);
  EXPECT_TRUE(manifest.edge_splits[1].label.present());
  EXPECT_EQ(manifest.edge_splits[1].negatives, 2);
  for (const std::vector<std::string>& ways :
       std::vector<std::vector<std::string>>{{"--all", "--pairs", pairs},
                                             {"--all", "--ids", ids},
                                             {"--pairs", pairs, "--ids", ids},
                                             {"--type", "node__to__node"}}) {
    EXPECT_EQ(split("d", ways), 2);
    EXPECT_THAT(err_,
                HasSubstr("millrace split: --ids, --all, --pairs: a split "
                          "of edges needs one of them\nmillrace split: "
                          "give edge ids, take all edges, or give pairs "
                          "of nodes\n"));
  }
}

TEST_F(StoreCommandsTest, ColumnsOfASplitBelongToPairs) {
  const std::string store = Stored(SmallGraph());
  const std::string file = Npy("ids", std::vector<int64_t>{5, 2});
  for (const char* option :
       {"--negatives", "--edge-types", "--labels", "--times"}) {
    for (const std::vector<std::string>& way :
         std::vector<std::vector<std::string>>{{"--all"}, {"--ids", file}}) {
      std::vector<std::string> args = {"split", store,  "--name",
                                       "few",   option, file};
      args.insert(args.end(), way.begin(), way.end());
      EXPECT_EQ(Run(args), 2);
      EXPECT_THAT(err_, HasSubstr(std::string("millrace split: ") + option +
                                  " needs --pairs\n"));
    }
  }
  EXPECT_EQ(Run({"split", store, "--name", "few"}), 2);
  EXPECT_THAT(err_, HasSubstr("--ids is needed: the nodes of the split"));
}

// Nodes 0 to 5 and 6 to 7; of the 12 edges, 10 end in the first part.
class PartitionCommandTest : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    dataset_ = Stored(SmallGraph());
    assignment_ = Npy("owners", std::vector<int64_t>{0, 0, 0, 0, 0, 0, 1, 1});
  }

  std::vector<std::string> Partition(const std::string& out,
                                     std::vector<std::string> more) {
    more.insert(more.begin(),
                {"partition", dataset_, "--parts", "2", "--out", Path(out)});
    return more;
  }

  std::string dataset_, assignment_;
};

TEST_F(PartitionCommandTest, ReportsWhatIsWhere) {
  const OrderedJson json = JsonOf(Partition(
      "a", {"--method", "given", "--assignment", assignment_, "--json"}));
  EXPECT_EQ(json, OrderedJson::parse(R"({
      "cut_edges": 4, "edge_balance": 1.6666666666666667, "edges": 12,
      "node_balance": 1.5, "nodes": 8,
      "parts": [{"cut_edges": 2, "edges": 10, "nodes": 6},
                {"cut_edges": 2, "edges": 2, "nodes": 2}]})"));
  ASSERT_EQ(Run(Partition("b", {"--method", "given", "--assignment",
                                "node=" + assignment_})),
            0)
      << err_;
  EXPECT_EQ(
      out_,
      "partition          nodes   share          edges   share     cut\n"
      "        0              6  75.00%             10  83.33%  20.00%\n"
      "        1              2  25.00%              2  16.67% 100.00%\n" +
          Path("b") +
          ": 8 nodes (balance 1.500), 12 edges (balance 1.667), 4 of them cut "
          "(33.33%)\n");
}

TEST_F(PartitionCommandTest, SharesOfNothingAreZero) {
  TestGraph graph;
  graph.types = {{.count = 4}};
  graph.relations = {{}};
  dataset_ = Stored(graph, 0, "bare");
  ASSERT_EQ(Run(Partition("a", {"--method", "hash"})), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("              0   0.00%   0.00%\n"));
  EXPECT_THAT(out_, HasSubstr(", 0 edges (balance 1.000), 0 of them cut "
                              "(0.00%)\n"));
  // With a single edge, one partition has all of them.
  graph.relations[0].edges = {{0, 1}};
  dataset_ = Stored(graph, 0, "one");
  ASSERT_EQ(Run(Partition("b", {"--method", "hash"})), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("              1 100.00%"));
}

TEST_F(PartitionCommandTest, TypesAreAssignedOnce) {
  EXPECT_EQ(
      Run(Partition("a", {"--method", "given", "--assignment", assignment_,
                          "--assignment", "node=" + assignment_})),
      2);
  EXPECT_THAT(err_,
              HasSubstr("--assignment: node type \"node\" is named twice"));
}

TEST_F(PartitionCommandTest, MethodsAreNamed) {
  for (const char* method : {"ldg", "random", "hash"}) {
    ASSERT_EQ(Run(Partition(method, {"--method", method, "--seed", "9"})), 0)
        << err_;
    const Manifest manifest = Store::Open(Path(method)).value()->manifest();
    EXPECT_EQ(manifest.partitioning.method, method);
    EXPECT_EQ(manifest.partitioning.seed, 9u);
    EXPECT_EQ(manifest.partitioning.hot, "degree");
    EXPECT_TRUE(manifest.schema.relations[0].has_in);
    EXPECT_FALSE(manifest.schema.relations[0].has_out);
  }
  EXPECT_EQ(Run(Partition("x", {"--method", "luck"})), 2);
}

TEST_F(PartitionCommandTest, OptionsReachTheStore) {
  ASSERT_EQ(Run(Partition("a", {"--method", "hash", "--directions", "both",
                                "--feature-dtype", "float16"})),
            0)
      << err_;
  const Manifest both = Store::Open(Path("a")).value()->manifest();
  EXPECT_TRUE(both.schema.relations[0].has_in);
  EXPECT_TRUE(both.schema.relations[0].has_out);
  EXPECT_EQ(both.schema.node_types[0].feature.dtype, DType::kFloat16);
  ASSERT_EQ(Run(Partition("b", {"--method", "hash", "--directions", "out"})), 0)
      << err_;
  const Manifest out = Store::Open(Path("b")).value()->manifest();
  EXPECT_FALSE(out.schema.relations[0].has_in);
  EXPECT_TRUE(out.schema.relations[0].has_out);
  EXPECT_EQ(out.schema.node_types[0].feature.dtype, DType::kFloat32);
}

TEST_F(PartitionCommandTest, JobsArePresampled) {
  ASSERT_EQ(
      Run(Partition("a", {"--method", "hash", "--hot", "presample", "--hot-job",
                          "--split test --fanouts 2 --batch-size 1"})),
      0)
      << err_;
  EXPECT_THAT(Store::Open(Path("a")).value()->manifest().partitioning.hot,
              StartsWith("presample"));
  EXPECT_EQ(Run(Partition("b", {"--hot-job", "--fanouts 2"})), 2);
  EXPECT_THAT(err_, HasSubstr("--hot-job needs --hot presample\n"));
  const auto refused = [&](const std::string& job) {
    EXPECT_EQ(Run(Partition("c", {"--hot", "presample", "--hot-job", job})), 2);
    return err_;
  };
  EXPECT_THAT(refused("--split test"),
              HasSubstr("--hot-job '--split test': --fanouts is needed"));
  EXPECT_THAT(refused("--fanout 2"),
              HasSubstr("--hot-job '--fanout 2': there is no option --fanout"));
  EXPECT_THAT(refused("--fanouts x"),
              HasSubstr("--hot-job '--fanouts x': --fanouts \"x\""));
  EXPECT_THAT(refused("--fanouts 2 --batch-size few"),
              HasSubstr("\"few\" is not a whole number"));
}

TEST_F(PartitionCommandTest, PartsAndOutAreNeeded) {
  EXPECT_EQ(Run({"partition", dataset_, "--parts", "2"}), 2);
  EXPECT_THAT(err_, HasSubstr("--out is required"));
  EXPECT_EQ(Run({"partition", dataset_, "--out", Path("a")}), 2);
  EXPECT_THAT(err_, HasSubstr("--parts is required"));
  EXPECT_EQ(
      Run({"partition", Path("none"), "--parts", "2", "--out", Path("a")}), 1);
}

}  // namespace
}  // namespace millrace::testing
