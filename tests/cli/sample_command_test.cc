// SPDX-License-Identifier: Apache-2.0
// millrace sample and digest, and batches as JSON.
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

#include "client/cli/batch_json.h"
#include "common/sample/digest.h"
#include "common/sample/local/local_batch_source.h"
#include "tests/cli/command_runner.h"
#include "tests/support/fleet_harness.h"
#include "tests/support/sampled.h"

namespace millrace::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class SampleCommandTest : public CommandTest {
 protected:
  // Runs `millrace sample` on `store_` and returns the batch.
  OrderedJson Sampled(std::vector<std::string> options) {
    options.insert(options.begin(), {"sample", "--store", store_});
    return JsonOf(std::move(options));
  }
  // Returns the first line that `millrace sample` ends with.
  std::string Refused(std::vector<std::string> options) {
    options.insert(options.begin(), {"sample", "--store", store_});
    EXPECT_EQ(Run(std::move(options)), 2);
    EXPECT_EQ(out_, "");
    return err_;
  }

  std::string store_;
};

TEST_F(SampleCommandTest, PrintsABatchOfGivenSeeds) {
  store_ = Stored(SmallGraph());
  const OrderedJson batch = Sampled(
      {"--fanouts", "-1", "--seed-ids", "2,6", "--epoch", "3", "--batch", "5"});
  EXPECT_EQ(batch, OrderedJson::parse(R"({
    "epoch": 3, "batch": 5,
    "seeds": {"type": "node", "ids": [2, 6]},
    "seed_to_local": [0, 1],
    "nodes": {"node": [2, 6, 5]},
    "edges": {"node__to__node": {"hop": [0, 0], "src": [2, 0], "dst": [0, 1],
                                 "edge_id": [6, 11]}}})"));
}

TEST_F(SampleCommandTest, EdgesPointAgainstTheListsOfOutEdges) {
  store_ = Stored(SmallGraph());
  const OrderedJson batch =
      Sampled({"--fanouts", "-1", "--seed-ids", "6", "--direction", "out"});
  EXPECT_EQ(batch["nodes"]["node"], OrderedJson({6, 5}));
  EXPECT_EQ(batch["edges"]["node__to__node"]["src"], OrderedJson::array({0}));
  EXPECT_EQ(batch["edges"]["node__to__node"]["dst"], OrderedJson::array({1}));
}

TEST_F(SampleCommandTest, FeaturesAndLabelsComeIfAskedFor) {
  store_ = Stored(SmallGraph());
  EXPECT_FALSE(Sampled({"--fanouts", "0", "--seed-ids", "7,3"}).contains("x"));
  const OrderedJson batch = Sampled(
      {"--fanouts", "0", "--seed-ids", "7,3", "--with-features", "--json"});
  EXPECT_EQ(batch["x"], OrderedJson::parse(R"({"node": [[7, 7.125, 7.25],
                                            [3, 3.125, 3.25]]})"));
  EXPECT_EQ(batch["y"], OrderedJson::parse(R"({"node": [1, 0]})"));
}

TEST_F(SampleCommandTest, SeedsComeFromSplitsOrFiles) {
  store_ = Stored(SmallGraph());
  const std::vector<std::string> plain = {"--fanouts", "0", "--no-shuffle"};
  const auto ids = [&](std::vector<std::string> more) {
    more.insert(more.begin(), plain.begin(), plain.end());
    return Sampled(more)["seeds"]["ids"];
  };
  EXPECT_EQ(ids({}), OrderedJson({0, 1, 4, 7}));
  EXPECT_EQ(ids({"--split", "test"}), OrderedJson({2, 5}));
  EXPECT_EQ(ids({"--batch-size", "3", "--batch", "1"}), OrderedJson({7}));
  EXPECT_EQ(ids({"--seeds-file", Npy("seeds", std::vector<int64_t>{5, 5, 3})}),
            OrderedJson({5, 5, 3}));
}

TEST_F(SampleCommandTest, SeedFlagsBelongTogether) {
  store_ = Stored(SmallGraph());
  EXPECT_THAT(Refused({"--fanouts", "1", "--seed-dst-ids", "1"}),
              HasSubstr("millrace sample: --seed-dst-ids needs --seed-ids\n"
                        "millrace sample: give both, or leave --seed-dst-ids "
                        "out"));
  EXPECT_THAT(Refused({"--fanouts", "1", "--seed-times", "1"}),
              HasSubstr(": --seed-times needs --seed-ids"));
  const std::string seeds = Npy("seeds", std::vector<int64_t>{5});
  EXPECT_THAT(
      Refused({"--fanouts", "1", "--seed-ids", "1", "--seeds-file", seeds}),
      HasSubstr("--seed-ids and --seeds-file cannot be used together\n"));
  EXPECT_THAT(
      Refused({"--fanouts", "1", "--seed-ids", "1,2", "--seed-dst-ids", "1,2"}),
      HasSubstr("--seed-dst-ids has 2 ids, but --seed-ids has 2\n"));
  EXPECT_THAT(
      Refused({"--fanouts", "1", "--seed-ids", "1,2", "--seed-times", "1"}),
      HasSubstr("--seed-times has 1 times for 2 seeds\n"));
  EXPECT_THAT(Refused({"--fanouts", "1", "--seeds", "edge", "--seed-ids", "1,2",
                       "--seed-dst-ids", "1"}),
              HasSubstr("--seed-dst-ids has 1 ids, but --seed-ids has 2\n"));
  EXPECT_THAT(Refused({"--fanouts", "1", "--seed-ids", "1, ,2"}),
              HasSubstr("an empty field is not a number"));
  EXPECT_THAT(Refused({"--seed-ids", "1"}), HasSubstr("--fanouts is needed"));
}

TEST_F(SampleCommandTest, EdgeSeedsHaveTwoEnds) {
  store_ = Stored(SmallGraph());
  const OrderedJson batch =
      Sampled({"--fanouts", "0", "--seeds", "edge", "--seed-ids", "7,1",
               "--seed-dst-ids", "0,7"});
  EXPECT_EQ(batch["seeds"], OrderedJson::parse(R"({
      "type": "node__to__node", "src": [7, 1], "dst": [0, 7], "label": [],
      "time": [], "neg": []})"));
  EXPECT_EQ(batch["nodes"]["node"].size(), 3u);
  const OrderedJson rows = batch["seed_to_local"];
  ASSERT_EQ(rows.size(), 2u);
  for (int end = 0; end < 2; ++end) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(batch["nodes"]["node"][rows[end][i].get<int>()],
                batch["seeds"][end == 0 ? "src" : "dst"][i]);
    }
  }
}

TEST_F(SampleCommandTest, SeedTimesComeWithTheirSeeds) {
  store_ = Stored(RichGraph());
  const OrderedJson batch =
      Sampled({"--type", "author", "--fanouts", "-1", "--temporal", "uniform",
               "--seed-ids", "1,4", "--seed-times", "15,10"});
  EXPECT_EQ(batch["seeds"]["time"], OrderedJson({15, 10}));
  // Both of 1's neighbours that came before 15, and both of 4's.
  EXPECT_EQ(batch["edges"]["author__knows__author"]["edge_id"].size(), 3u);
  EXPECT_EQ(batch["trees"]["author"].size(), batch["nodes"]["author"].size());
}

TEST_F(SampleCommandTest, TheOnlyTypeWithTheSplitIsTaken) {
  store_ = Stored(RichGraph());
  const OrderedJson batch = Sampled({"--fanouts", "0", "--split", "test"});
  EXPECT_EQ(batch["seeds"]["type"], "author");
  EXPECT_THAT(err_, HasSubstr("seeds are of --type author, which alone has a "
                              "split test"));
  EXPECT_EQ(Sampled({"--fanouts", "0", "--type", "paper"})["seeds"]["type"],
            "paper");
  EXPECT_EQ(err_, "");
  // Seeds that are given are of no split.
  EXPECT_THAT(Refused({"--fanouts", "0", "--seed-ids", "1"}),
              HasSubstr("--type is needed"));
}

TEST_F(SampleCommandTest, FleetsGiveTheSameBatch) {
  store_ = Stored(SmallGraph());
  FleetHarness servers(SmallGraph(), 2);
  const std::vector<std::string> options = {"--fanouts", "-1,-1", "--seed-ids",
                                            "1", "--with-features"};
  const OrderedJson local = Sampled(options);
  std::vector<std::string> args = {"sample", "--servers", "@" + servers.list()};
  args.insert(args.end(), options.begin(), options.end());
  EXPECT_EQ(JsonOf(args), local);
}

// The digests of all batches, made without the command.
std::vector<std::string> DigestsOf(const TestGraph& graph, const JobSpec& spec,
                                   uint32_t epoch, uint32_t batches,
                                   const Columns& columns) {
  const auto source = OpenGraph(graph, 0);
  const ResolvedJob job = ResolveJob(spec, source->manifest()).value();
  std::vector<std::string> digests;
  DigestTotal total;
  for (uint32_t i = 0; i < batches; ++i) {
    const Batch batch =
        source->Make(job, {.epoch = epoch, .batch = i, .columns = columns})
            .value();
    const Sha256 digest = DigestBatch(batch, source->manifest().schema);
    total.Add(digest);
    digests.push_back(Hex(digest));
  }
  digests.push_back(Hex(total.Finish()));
  return digests;
}

TEST_F(SampleCommandTest, DigestPrintsEveryBatchAndTheTotal) {
  const std::string store = Stored(SmallGraph());
  JobSpec spec;
  spec.fanouts = {2, 2};
  spec.batch_size = 3;
  const std::vector<std::string> args = {"digest",    "--store", store,
                                         "--fanouts", "2,2",     "--batch-size",
                                         "3",         "--epoch", "4"};
  const std::vector<std::string> want =
      DigestsOf(SmallGraph(), spec, 4, 2, DigestColumns(true, false));
  ASSERT_EQ(Run(args), 0) << err_;
  EXPECT_EQ(out_, "4 0 " + want[0] + "\n4 1 " + want[1] + "\ntotal " + want[2] +
                      "\n");
  std::vector<std::string> more = args;
  more.push_back("--json");
  ASSERT_EQ(Run(more), 0) << err_;
  // Two batches of two hops, with the features of ten nodes.
  EXPECT_EQ(out_, "{\"epoch\":4,\"batch\":0,\"digest\":\"" + want[0] +
                      "\"}\n{\"epoch\":4,\"batch\":1,\"digest\":\"" + want[1] +
                      "\"}\n{\"total\":\"" + want[2] +
                      "\",\"gpu_hops\":0,\"cpu_hops\":4,\"gpu_rows\":0,"
                      "\"gpu_pinned_rows\":0,\"cpu_rows\":10}\n");
  more = args;
  more.insert(more.end(), {"--batches", "1"});
  ASSERT_EQ(Run(more), 0) << err_;
  EXPECT_EQ(out_, "4 0 " + want[0] + "\ntotal " +
                      DigestsOf(SmallGraph(), spec, 4, 1,
                                DigestColumns(true, false))[1] +
                      "\n");
  // More than there are.
  more.back() = "9";
  ASSERT_EQ(Run(more), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("total " + want[2]));
  more = args;
  more.push_back("--no-features");
  ASSERT_EQ(Run(more), 0) << err_;
  EXPECT_THAT(out_,
              StartsWith("4 0 " + DigestsOf(SmallGraph(), spec, 4, 1,
                                            DigestColumns(false, false))[0]));
}

TEST_F(SampleCommandTest, DigestTakesFeaturesOfEdgesAndSeedsOfAFile) {
  const std::string store = Stored(RichGraph());
  JobSpec spec;
  spec.fanouts = {-1};
  spec.seed_type = "paper";
  ASSERT_EQ(
      Run({"digest", "--store", store, "--fanouts", "-1", "--edge-features"}),
      0)
      << err_;
  EXPECT_THAT(err_, HasSubstr("seeds are of --type paper"));
  EXPECT_THAT(out_,
              StartsWith("0 0 " + DigestsOf(RichGraph(), spec, 0, 1,
                                            DigestColumns(true, true))[0]));
  const std::vector<std::string> file = {
      "digest",
      "--store",
      store,
      "--fanouts",
      "1",
      "--type",
      "paper",
      "--seeds-file",
      Npy("seeds", std::vector<int64_t>{5, 5, 3}),
      "--batch-size",
      "1"};
  ASSERT_EQ(Run(file), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\n0 2 "));
  EXPECT_THAT(out_, Not(HasSubstr("\n0 3 ")));
}

Schema PairSchema() {
  Schema schema;
  schema.node_types = {{.name = "u", .count = 9}, {.name = "v", .count = 9}};
  schema.relations = {{.src = 0, .name = "r", .dst = 1}};
  return schema;
}

template <typename T>
Array Of(std::vector<T> values) {
  return Array::Adopt(std::move(values));
}

// Two pairs of which nothing is expanded.
Batch PairBatch() {
  Batch batch;
  batch.seed_kind = SeedKind::kEdge;
  batch.seed_type = 1;
  batch.nodes.resize(2);
  for (NodeBlock& block : batch.nodes) block.hop_offsets = {0, 2};
  batch.edges.resize(1);
  batch.edges[0].indptr = Of<uint32_t>({0});
  batch.edges[0].neighbor = Of<uint32_t>({});
  batch.seed = Of<int64_t>({3, 4});
  batch.seed_to_local = Of<uint32_t>({0, 1});
  batch.edge_seeds.dst = Of<int64_t>({5, 6});
  batch.edge_seeds.dst_local = Of<uint32_t>({1, 0});
  return batch;
}

TEST(BatchJsonTest, GivenColumnsOfPairsAreShown) {
  Batch batch = PairBatch();
  batch.edge_seeds.label = Of<float>({0.5F, 2});
  batch.edge_seeds.edge_type = Of<int32_t>({7, 8});
  batch.seed_time = Of<int64_t>({10, 20});
  batch.edge_seeds.negative_dst = Of<int64_t>({1, 2, 3, 4});
  batch.edge_seeds.negative_local = Of<uint32_t>({2, 3, 4, 5});
  const OrderedJson json = BatchJson(batch, PairSchema(), false);
  EXPECT_EQ(json["seeds"], OrderedJson::parse(R"({
      "type": "u__r__v", "src": [3, 4], "dst": [5, 6], "label": [0.5, 2.0],
      "time": [10, 20], "edge_type": [7, 8], "neg": [1, 2, 3, 4]})"));
  EXPECT_EQ(json["seed_to_local"],
            OrderedJson::parse("[[0, 1], [1, 0], [2, 3, 4, 5]]"));
  EXPECT_FALSE(json.contains("false_negatives"));
  EXPECT_FALSE(json.contains("trees"));
}

TEST(BatchJsonTest, DrawnPairsFollowTheSeedsWithLabelZero) {
  Batch batch = PairBatch();
  batch.edge_seeds.negative_src = Of<int64_t>({7});
  batch.edge_seeds.negative_dst = Of<int64_t>({8});
  batch.edge_seeds.negative_src_local = Of<uint32_t>({2});
  batch.edge_seeds.negative_local = Of<uint32_t>({3});
  batch.edge_seeds.false_negatives = Of<uint32_t>({1});
  OrderedJson json = BatchJson(batch, PairSchema(), false);
  EXPECT_EQ(json["seeds"], OrderedJson::parse(R"({
      "type": "u__r__v", "src": [3, 4, 7], "dst": [5, 6, 8],
      "label": [1, 1, 0], "time": [], "neg": []})"));
  EXPECT_EQ(json["seed_to_local"],
            OrderedJson::parse("[[0, 1, 2], [1, 0, 3]]"));
  EXPECT_EQ(json["false_negatives"], 1);
  batch.edge_seeds.label = Of<int64_t>({4, 5});
  json = BatchJson(batch, PairSchema(), false);
  EXPECT_EQ(json["seeds"]["label"], OrderedJson({4, 5, 0}));
}

TEST(BatchJsonTest, NumbersOfEveryDtypeAreShown) {
  Batch batch = PairBatch();
  const std::vector<std::pair<Array, std::string>> cases = {
      {Of<float>({1.5F, -2}), "[1.5,-2.0]"},
      {Of<double>({0.1, 1e300}), "[0.1,1e+300]"},
      {Of<int8_t>({-3, 4}), "[-3,4]"},
      {Of<uint8_t>({255, 0}), "[255,0]"},
      {Of<int64_t>({-9, int64_t{1} << 62}), "[-9,4611686018427387904]"},
      {Of<float>({std::numeric_limits<float>::quiet_NaN(), 1}), "[null,1.0]"},
      {Array::Adopt(std::vector<int32_t>{1, 2, 3, 4, 5, 6}, {2, 3}),
       "[[1,2,3],[4,5,6]]"},
      {Array::Adopt(std::vector<int32_t>{}, {0, 3}), "[]"}};
  for (const auto& [column, text] : cases) {
    batch.nodes[1].feature = column;
    EXPECT_EQ(BatchJson(batch, PairSchema(), true)["x"]["v"].dump(), text);
  }
  // 1.5 and -2 in halves of both kinds.
  for (const auto& [dtype, bits] :
       std::vector<std::pair<DType, std::vector<uint16_t>>>{
           {DType::kFloat16, {0x3e00, 0xc000}},
           {DType::kBFloat16, {0x3fc0, 0xc000}}}) {
    batch.nodes[1].feature = Array::Borrow(dtype, {2}, bits.data(), nullptr);
    EXPECT_EQ(BatchJson(batch, PairSchema(), true)["x"]["v"].dump(),
              "[1.5,-2.0]");
  }
}

// Graph 0 has the nodes 0 and 2; node 1 is of no graph of the batch.
TEST(BatchJsonTest, NodesNameTheRowOfTheirGraph) {
  Batch batch = PairBatch();
  batch.seed_kind = SeedKind::kGraph;
  batch.nodes[0].hop_offsets = {0, 0, 4};
  batch.nodes[1].hop_offsets = {0, 2, 2};
  batch.edges[0].indptr = Of<uint32_t>({0, 2, 3});
  batch.edges[0].neighbor = Of<uint32_t>({0, 2, 3});
  const OrderedJson json = BatchJson(batch, PairSchema(), false);
  EXPECT_EQ(json["seeds"],
            OrderedJson::parse(R"({"type": "v", "graphs": [3, 4]})"));
  EXPECT_EQ(json["graph_of"], OrderedJson::parse(R"({"u": [0, -1, 0, 1]})"));
  EXPECT_EQ(json["seed_to_local"], OrderedJson({0, 1}));
  // Edges among the nodes say nothing of graphs.
  Schema schema = PairSchema();
  schema.relations.push_back({.src = 0, .name = "bond", .dst = 0});
  batch.edges.push_back({});
  batch.edges[1].indptr = Of<uint32_t>({0, 1, 2, 2, 2});
  batch.edges[1].neighbor = Of<uint32_t>({1, 1});
  EXPECT_EQ(BatchJson(batch, schema, false)["graph_of"], json["graph_of"]);
}

}  // namespace
}  // namespace millrace::testing
