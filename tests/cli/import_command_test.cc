// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/import_formats.h"
#include "common/graph/store.h"
#include "tests/cli/command_runner.h"
#include "tests/support/python.h"

namespace millrace::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

class ImportCommandTest : public CommandTest {
 protected:
  // Runs `millrace import FORMAT ARGS --out NEW`, and returns the exit status.
  int Import(const std::string& format, std::vector<std::string> args) {
    out_folder_ = Path("out" + std::to_string(++imports_));
    args.insert(args.begin(), {"import", format});
    args.insert(args.end(), {"--out", out_folder_});
    return Run(std::move(args));
  }
  // The error of an import that is refused as wrong usage.
  std::string Refused(const std::string& format,
                      std::vector<std::string> args) {
    EXPECT_EQ(Import(format, std::move(args)), 2);
    EXPECT_FALSE(std::filesystem::exists(out_folder_));
    return err_;
  }
  // The dataset that the last import has made.
  std::unique_ptr<Store> Made() const {
    return Store::Open(out_folder_).value();
  }

  std::string Edges() {
    return Npy("edges", std::vector<int64_t>{0, 1, 2, 3, 1, 1, 0, 0}, {2, 4});
  }
  std::string Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(
        std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name)) << text;
    return Path(name);
  }

  std::string out_folder_;
  int imports_ = 0;
};

TEST_F(ImportCommandTest, ReportsWhatItMade) {
  const std::string features =
      Npy("x", std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const std::string labels = Npy("y", std::vector<int64_t>{0, 1, 1, -1});
  const std::string train = Npy("train", std::vector<int64_t>{0, 2});
  const std::string pairs = Npy("pairs", std::vector<int64_t>{1, 3});
  const std::vector<std::string> args = {
      "--edges",      Edges(), "--features", features,
      "--labels",     labels,  "--train",    train,
      "--node-times", labels,  "--valid",    "node__to__node=" + pairs};
  ASSERT_EQ(Import("npy", args), 0) << err_;
  EXPECT_EQ(out_, "dataset " + out_folder_ +
                      "\n  node: 4 nodes, 2 features, labels of 3 nodes in 2 "
                      "classes, times\n  node__to__node: 4 edges\n"
                      "  split train of node: 2\n"
                      "  split valid of node__to__node: 2\n");
  EXPECT_THAT(err_, Not(HasSubstr("classes of node have no node")));
  std::vector<std::string> more = args;
  more.push_back("--json");
  ASSERT_EQ(Import("npy", more), 0) << err_;
  OrderedJson want = OrderedJson::parse(R"({"dataset": "",
      "edges": {"node__to__node": 4},
      "labels": {"node": {"labelled": 3, "classes": 2, "largest": 1,
                          "largest_node": 1, "sparse": false}},
      "nodes": {"node": 4},
      "splits": [{"count": 2, "name": "train", "type": "node"},
                 {"count": 2, "name": "valid", "type": "node__to__node"}]})");
  want["dataset"] = out_folder_;
  EXPECT_EQ(nlohmann::json::parse(out_), nlohmann::json(want));
}

TEST_F(ImportCommandTest, WarnsOfClassesThatMayBeNone) {
  const std::string labels = Npy("y", std::vector<int64_t>{0, 1, 1, 99});
  ASSERT_EQ(Import("npy", {"--edges", Edges(), "--labels", labels}), 0);
  EXPECT_THAT(err_, HasSubstr("most of the 100 classes of node have no node"));
}

TEST_F(ImportCommandTest, TypesAreNamedBeforeTheirFiles) {
  const std::string edges = Edges();
  const std::string ids = Npy("ids", std::vector<int64_t>{0, 1});
  const std::string labels = Npy("y", std::vector<int64_t>{0, 1, 1, 0});
  const std::vector<std::string> shop = {
      "--edges",     "user__buys__item=" + edges,
      "--num-nodes", "user=5",
      "--labels",    "item=" + labels,
      "--train",     ids};
  ASSERT_EQ(Import("npy", shop), 0) << err_;
  EXPECT_THAT(err_, HasSubstr("the seeds of " + ids +
                              " are of type item, the only one with labels"));
  EXPECT_THAT(out_, HasSubstr("  user: 5 nodes\n  item: 4 nodes, labels of 4"));
  EXPECT_THAT(out_, HasSubstr("  split train of item: 2\n"));
  // Not if they are named.
  std::vector<std::string> named = shop;
  named.back() = "user=" + ids;
  ASSERT_EQ(Import("npy", named), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("  split train of user: 2\n"));
  EXPECT_THAT(err_, Not(HasSubstr("which alone has labels")));
  // A file without a name is not left out for one that has it.
  named = shop;
  named.insert(named.end(), {"--train", "item=" + ids});
  EXPECT_NE(Import("npy", named), 0);
}

TEST_F(ImportCommandTest, BadFilesAndNumbersAreRefused) {
  const std::string edges = Edges();
  for (const char* number : {"x", "-1", "user=", "user=x"}) {
    EXPECT_THAT(Refused("npy", {"--edges", edges, "--num-nodes", number}),
                HasSubstr("--num-nodes " + std::string(number) +
                          ": give N or TYPE=N\n"));
  }
  EXPECT_EQ(Import("npy", {"--edges", edges, "--num-nodes", "0"}), 1);
  EXPECT_THAT(Refused("npy", {"--edges", edges, "--labels", edges, "--labels",
                              "other"}),
              HasSubstr("--labels other: given twice for the same type\n"));
  EXPECT_THAT(
      Refused("npy", {"--edges", edges, "--train", "a=x", "--train", "a=y"}),
      HasSubstr("--train a=y: given twice for a\n"));
  EXPECT_THAT(Refused("npy", {}), HasSubstr("--edges is required"));
}

TEST_F(ImportCommandTest, EachColumnHasItsOption) {
  const std::string numbers = Npy("n", std::vector<int64_t>{1, 2, 3, 4});
  const std::string floats = Npy("f", std::vector<float>{1, 2, 3, 4});
  const std::string matrix =
      Npy("m", std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const std::string ids = Npy("ids", std::vector<int64_t>{0});
  ASSERT_EQ(Import("npy", {"--edges", Edges(), "--edge-weights", floats,
                           "--edge-types", numbers, "--edge-features", matrix,
                           "--valid", ids, "--test", ids}),
            0)
      << err_;
  const Relation weighted = Made()->schema().relations[0];
  EXPECT_TRUE(weighted.has_weight);
  EXPECT_TRUE(weighted.has_type);
  EXPECT_EQ(weighted.feature.row_shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(weighted.time, ListTime::kNone);
  ASSERT_EQ(Made()->manifest().splits.size(), 2u);
  EXPECT_EQ(Made()->manifest().splits[0].name, "valid");
  EXPECT_EQ(Made()->manifest().splits[1].name, "test");
  ASSERT_EQ(Import("npy", {"--edges", Edges(), "--edge-times", numbers}), 0)
      << err_;
  EXPECT_EQ(Made()->schema().relations[0].time, ListTime::kEdge);
}

TEST_F(ImportCommandTest, SharedOptionsChangeTheGraph) {
  // 0-1, 1-1 (a loop), 2-0 and 3-0.
  const std::string edges = Edges();
  const auto count = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--edges", edges});
    EXPECT_EQ(Import("npy", more), 0) << err_;
    return Made()->schema().relations[0].edge_count;
  };
  EXPECT_EQ(count({}), 4);
  EXPECT_EQ(count({"--self-loops", "keep"}), 4);
  EXPECT_EQ(count({"--self-loops", "remove"}), 3);
  EXPECT_EQ(count({"--self-loops", "add"}), 4 + 3);
  EXPECT_EQ(count({"--undirected", "--coalesce"}), 2 * 3 + 1);
  EXPECT_EQ(count({"--add-reverse"}), 4);
  EXPECT_EQ(Made()->schema().relations.size(), 2u);
}

TEST_F(ImportCommandTest, FeaturesAreNormalised) {
  const std::string edges = Edges();
  const std::string features =
      Npy("x", std::vector<float>{1, 3, 2, 2, 0, 4, 5, 15}, {4, 2});
  const auto first = [&](const std::string& how) {
    EXPECT_EQ(Import("npy", {"--edges", edges, "--features", features,
                             "--normalize-features", how}),
              0)
        << err_;
    return Made()->partition(0)->nodes[0].feature.As<float>()[0];
  };
  EXPECT_EQ(first("none"), 1);
  EXPECT_EQ(first("row"), 0.25F);
  // 1 in a column of mean 2 and variance 3.5.
  EXPECT_NEAR(first("standard"), -1 / std::sqrt(3.5), 1e-6);
}

TEST_F(ImportCommandTest, EdgesAreSplit) {
  std::vector<int64_t> edges, times;
  for (int64_t v = 0; v < 10; ++v) edges.push_back(v);
  for (int64_t v = 0; v < 10; ++v) edges.push_back((v + 1) % 10);
  for (int64_t v = 0; v < 10; ++v) times.push_back(9 - v);
  const std::vector<std::string> args = {
      "--edges",           Npy("ring", edges, {2, 10}), "--edge-times",
      Npy("times", times), "--edge-split-fractions",    "0.6,0.2,0.2"};
  const auto imported = [&](std::vector<std::string> more) {
    more.insert(more.begin(), args.begin(), args.end());
    EXPECT_EQ(Import("npy", more), 0) << err_;
    return Made();
  };
  // Edges of valid and test are not in the graph, unless the split is by time.
  EXPECT_EQ(imported({})->schema().relations[0].edge_count, 6);
  EXPECT_EQ(Made()->manifest().edge_splits.size(), 3u);
  EXPECT_EQ(
      imported({"--edge-split-by", "time"})->schema().relations[0].edge_count,
      10);
  EXPECT_THAT(Refused("npy", {"--edges", args[1], "--edge-split-by", "time"}),
              HasSubstr("--edge-split-by needs --edge-split-fractions"));
}

TEST_F(ImportCommandTest, ErrorsOfTheInputSayThatNothingWasWritten) {
  const std::string one = Npy("one", std::vector<int64_t>{1, 2, 3});
  EXPECT_EQ(Import("npy", {"--edges", one}), 1);
  EXPECT_THAT(err_, HasSubstr("\nmillrace import npy: correct the input and "
                              "import it again; nothing was written\n"));
  // The end of a zip file that has one entry, which is not there.
  std::string end("PK\x05\x06\0\0\0\0\1\0\1\0\x2e\0\0\0\0\0\0\0\0\0", 22);
  Write("reddit/reddit_data.npz", std::string(46, 'x') + end);
  Write("reddit/reddit_graph.npz", std::string(46, 'x') + end);
  EXPECT_EQ(Import("reddit", {Path("reddit")}), 1);
  EXPECT_THAT(err_, HasSubstr("\nmillrace import reddit: the input is damaged: "
                              "download or re-create that file, then import "
                              "again; nothing was written\n"));
  EXPECT_EQ(Import("npy", {"--edges", Path("absent.npy")}), 1);
  EXPECT_THAT(err_, Not(HasSubstr("nothing was written")));
}

TEST_F(ImportCommandTest, OldTargetsAreLeftAlone) {
  std::filesystem::create_directory(Path("old"));
  EXPECT_EQ(Run({"import", "npy", "--edges", Edges(), "--out", Path("old")}),
            1);
  EXPECT_THAT(err_, HasSubstr(Path("old")));
  EXPECT_TRUE(std::filesystem::is_empty(Path("old")));
}

TEST_F(ImportCommandTest, FakeGraphsHaveSplitsUnlessThereAreFolds) {
  const std::vector<std::string> args = {
      "--nodes",   "50", "--avg-degree", "2", "--features", "3",
      "--classes", "2",  "--seed",       "5"};
  ASSERT_EQ(Import("fake", args), 0) << err_;
  EXPECT_EQ(Made()->schema().node_types[0].count, 50);
  EXPECT_EQ(Made()->schema().node_types[0].feature.row_shape[0], 3);
  ASSERT_EQ(Made()->manifest().splits.size(), 3u);
  EXPECT_EQ(Made()->manifest().splits[0].count, 40);
  EXPECT_EQ(Made()->manifest().splits[1].count, 5);
  std::vector<std::string> folds = args;
  folds.insert(folds.end(), {"--folds", "5"});
  ASSERT_EQ(Import("fake", folds), 0) << err_;
  EXPECT_EQ(Made()->manifest().splits.size(), 15u);
  EXPECT_EQ(Made()->manifest().splits[0].name, "train0");
  for (const char* bad : {"2", "1001"}) {
    folds.back() = bad;
    EXPECT_THAT(Refused("fake", folds), HasSubstr("--folds"));
  }
  folds.back() = "3";
  folds.insert(folds.end(), {"--split-fractions", "0.5,0.2,0.3"});
  EXPECT_THAT(
      Refused("fake", folds),
      HasSubstr("--split-fractions and --folds cannot be used together"));
}

TEST_F(ImportCommandTest, OgbTakesASplitOrMakesOne) {
  const std::string cora = std::string(MILLRACE_TEST_DATA) + "/cora";
  ASSERT_EQ(Import("ogb", {cora, "--split", "public"}), 0) << err_;
  EXPECT_EQ(Made()->schema().node_types[0].count, 2708);
  EXPECT_EQ(Made()->manifest().splits.size(), 3u);
  for (const std::vector<std::string>& made :
       std::vector<std::vector<std::string>>{
           {"--split-fractions", "0.8,0.1,0.1"}, {"--folds", "3"}}) {
    std::vector<std::string> args = {cora, "--split", "public"};
    args.insert(args.end(), made.begin(), made.end());
    EXPECT_THAT(Refused("ogb", args),
                HasSubstr("--split takes the folder's split, which "
                          "--split-fractions and --folds replace"));
  }
  ASSERT_EQ(Import("ogb", {cora, "--features",
                           Npy("x", std::vector<float>(2708 * 2), {2708, 2})}),
            0)
      << err_;
  EXPECT_EQ(Made()->schema().node_types[0].feature.row_shape[0], 2);
}

TEST_F(ImportCommandTest, TuFeaturesAreAsAskedFor) {
  const std::string mutag = std::string(MILLRACE_TEST_DATA) + "/mutag";
  const auto width = [&](const std::string& features) {
    EXPECT_EQ(Import("tu", {mutag, "--node-features", features}), 0) << err_;
    return Made()->schema().node_types[0].feature.row_shape[0];
  };
  EXPECT_EQ(width("ones"), 1);
  EXPECT_EQ(width("labels"), 7);
  EXPECT_EQ(width("default"), 7);
  EXPECT_EQ(width("degree"), 5);  // degrees are 0 to 4
  EXPECT_EQ(Import("tu", {mutag, "--node-features", "attributes"}), 1);
  EXPECT_THAT(Refused("tu", {mutag, "--node-features", "none"}),
              HasSubstr("is not one of"));
}

TEST_F(ImportCommandTest, TriplesHaveColumnsAndNames) {
  Write("kg/train.txt", "ann\tknows\tbob\nbob\tknows\tcid\n");
  Write("kg/valid.txt", "ann\tknows\tcid\n");
  Write("kg/test.txt", "cid\tlikes\tann\n");
  ASSERT_EQ(Import("triples", {Path("kg"), "--names-out", Path("names")}), 0)
      << err_;
  EXPECT_EQ(Made()->schema().node_types[0].count, 3);
  EXPECT_EQ(Made()->schema().relations[0].edge_count, 2);
  EXPECT_TRUE(std::filesystem::exists(Path("names/entities.txt")));
  ASSERT_EQ(Import("triples", {Path("kg"), "--reciprocal"}), 0) << err_;
  EXPECT_EQ(Made()->schema().relations[0].edge_count, 4);
  // With columns in another order, "knows" and "likes" are entities.
  ASSERT_EQ(Import("triples", {Path("kg"), "--columns", "h, t ,r"}), 0) << err_;
  EXPECT_EQ(Made()->schema().node_types[0].count, 5);
  // Names are not written over.
  EXPECT_EQ(Import("triples", {Path("kg"), "--names-out", Path("names")}), 1);
  EXPECT_FALSE(std::filesystem::exists(out_folder_));
}

// Partition v of node v is (v + v / 3) mod 3; see make_partitions.py.
TEST_F(ImportCommandTest, PartitionFoldersKeepTheirAssignment) {
  constexpr int kNoTorch = 77;
  const int made = RunPython(MILLRACE_TORCH_PYTHON,
                             "ingest/formats/make_partitions.py", {Path("in")});
  if (made == kNoTorch) GTEST_SKIP() << "no Python has PyTorch";
  ASSERT_EQ(made, 0);
  for (const auto& [format, folder] :
       std::vector<std::pair<std::string, std::string>>{
           {"pyg-partitions", "in/pyg/rich-partitions"},
           {"glt-partitions", "in/glt/legacy-partitions"}}) {
    const std::string owners = Path(format + ".npy");
    ASSERT_EQ(Import(format, {Path(folder), "--assignment-out", owners}), 0)
        << err_;
    EXPECT_EQ(Made()->schema().node_types[0].count, 40);
    const Array array = MapNpy(owners).value();
    ASSERT_EQ(array.rows(), 40);
    for (int64_t v = 0; v < 40; ++v) {
      EXPECT_EQ(array.IntegerAt(v), (v + v / 3) % 3);
    }
    // The owners are not written over, and nothing is read before that is
    // known.
    EXPECT_EQ(Import(format, {Path("absent"), "--assignment-out", owners}), 1);
    EXPECT_THAT(err_, HasSubstr(owners));
    EXPECT_FALSE(std::filesystem::exists(out_folder_));
  }
  EXPECT_THAT(Refused("pyg-partitions",
                      {Path("in/pyg/hetero-partitions"), "--type", "nobody"}),
              HasSubstr("nobody"));
}

TEST_F(ImportCommandTest, OnlyPartitionFoldersHaveOwners) {
  EXPECT_THAT(Refused("npy", {"--edges", Edges(), "--assignment-out", "x"}),
              HasSubstr("there is no option --assignment-out"));
}

TEST_F(ImportCommandTest, FoldersThatAreNotThereAreNamed) {
  for (const ImportFormat& format : ImportFormats()) {
    const std::string name = format.name;
    if (name == "npy" || name == "fake") continue;
    EXPECT_EQ(Import(name, {Path("nothing")}), 1) << name;
    EXPECT_THAT(err_, HasSubstr(Path("nothing"))) << name;
    EXPECT_THAT(Refused(name, {}), HasSubstr("DIR is required")) << name;
  }
}

}  // namespace
}  // namespace millrace::testing
