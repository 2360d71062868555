// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/ogb.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/ingest/importer.h"
#include "common/table/line_reader.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OgbTest : public testing::DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    Homogeneous();
  }

  // Writes `path` below the input directory; compressed if it ends in .gz.
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = directory_ / "in" / path;
    std::filesystem::create_directories(file.parent_path());
    if (file.extension() == ".gz") {
      gzFile out = gzopen(file.c_str(), "wb");
      gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
      gzclose(out);
    } else {
      std::ofstream(file, std::ios::binary) << text;
    }
  }

  void Homogeneous() {
    Write("raw/num-node-list.csv.gz", "3\n");
    Write("raw/num-edge-list.csv.gz", "2\n");
    Write("raw/edge.csv.gz", "0,1\n2,1\n");
    Write("raw/node-feat.csv.gz", "1,0.5\n2,-1e-1\n3,0\n");
    Write("raw/node-label.csv.gz", "0\n1\n1\n");
    Write("split/random/train.csv.gz", "2\n0\n");
    Write("split/random/valid.csv.gz", "1\n");
    Write("split/random/test.csv.gz", "");
  }

  void Heterogeneous() {
    std::filesystem::remove_all(directory_ / "in");
    Write("raw/triplet-type-list.csv.gz", "b,r,a\na,s,b\n");
    Write("raw/num-node-dict.csv.gz", "c,a,b\n1,2,3\n");
    Write("raw/nodetype-has-feat.csv.gz", "c,a,b\nFalse,True,False\n");
    Write("raw/nodetype-has-label.csv.gz", "c,a,b\nFalse,False,True\n");
    Write("raw/node-feat/a/node-feat.csv.gz", "1\n2\n");
    Write("raw/node-label/b/node-label.csv.gz", "0.5\nnan\n2\n");
    Write("raw/node_year/b/node_year.csv.gz", "2001\n2003\n2002\n");
    Write("raw/relations/b___r___a/edge.csv.gz", "0,0\n1,0\n2,0\n");
    Write("raw/relations/b___r___a/num-edge-list.csv.gz", "3\n");
    Write("raw/relations/b___r___a/edge_reltype.csv.gz", "7\n8\n9\n");
    Write("raw/relations/a___s___b/edge.csv.gz", "1,2\n");
    Write("split/only/nodetype-has-split.csv.gz", "c,a,b\nFalse,False,True\n");
    for (const char* part : {"train", "valid", "test"}) {
      Write(std::string("split/only/b/") + part + ".csv.gz", "1\n");
    }
  }

  absl::StatusOr<Manifest> Import(const OgbInput& input) {
    const auto graph = OpenOgb(input, {});
    if (!graph.ok()) return graph.status();
    return ImportGraph(*graph, {}, directory_ / "out");
  }
  absl::StatusOr<Manifest> Import() {
    return Import({directory_ / "in", "", {}});
  }

  void ExpectRefusal(const std::string& path, const std::string& text,
                     const char* what) {
    SCOPED_TRACE(path + ": " + text);
    Homogeneous();
    Write(path, text);
    ExpectRefusal(what);
  }
  void ExpectRefusal(const char* what) {
    const auto manifest = Import();
    ASSERT_FALSE(manifest.ok());
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr(what));
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      EXPECT_EQ(entry.path().filename(), "in");
    }
  }
};

TEST_F(OgbTest, ReadsHomogeneousFolder) {
  const auto manifest = Import();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const auto store = Store::Open(directory_ / "out").value();
  const NodeColumns& nodes = store->partition(0)->nodes[0];
  EXPECT_THAT(nodes.feature.As<float>(),
              ElementsAreArray({1.f, 0.5f, 2.f, -0.1f, 3.f, 0.f}));
  EXPECT_THAT(nodes.label.As<int64_t>(), ElementsAreArray({0, 1, 1}));
  const NeighborLists& in = store->partition(0)->edges[0].in;
  EXPECT_THAT(in.indptr.As<int64_t>(), ElementsAreArray({0, 0, 2, 2}));
  EXPECT_THAT(in.indices.As<uint32_t>(), ElementsAreArray({0, 2}));
  EXPECT_EQ(store->schema().RelationName(0), "node__to__node");
  EXPECT_THAT((*store->FindSplit(0, "train"))->original_id.As<int64_t>(),
              ElementsAreArray({0, 2}));
  EXPECT_THAT((*store->FindSplit(0, "test"))->id.As<uint32_t>(), IsEmpty());
}

TEST_F(OgbTest, ReadsHeterogeneousFolder) {
  Heterogeneous();
  const auto manifest = Import();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const auto store = Store::Open(directory_ / "out").value();
  const Schema& schema = store->schema();
  ASSERT_EQ(schema.node_types.size(), 3);
  EXPECT_EQ(schema.node_types[0].name, "b");
  EXPECT_EQ(schema.node_types[1].name, "a");
  EXPECT_EQ(schema.node_types[2].name, "c");
  EXPECT_EQ(schema.RelationName(1), "a__s__b");
  EXPECT_EQ(schema.relations[0].time, ListTime::kNeighbor);
  // In-lists of a hold neighbours of type b, which have times; out-lists do
  // not.
  const EdgeColumns& edges = store->partition(0)->edges[0];
  EXPECT_THAT(edges.in.time.As<int64_t>(),
              ElementsAreArray({2001, 2002, 2003}));
  EXPECT_THAT(edges.in.edge_id.As<int64_t>(), ElementsAreArray({0, 2, 1}));
  EXPECT_THAT(edges.in.type.As<int32_t>(), ElementsAreArray({7, 9, 8}));
  EXPECT_FALSE(edges.out.time.present());
  EXPECT_TRUE(std::isnan(store->partition(0)->nodes[0].label.As<float>()[1]));
  ASSERT_EQ(store->manifest().splits.size(), 3);
  EXPECT_EQ(store->manifest().splits[0].type, 0);
}

// Columns that may be absent, under either of their names.
TEST_F(OgbTest, ReadsOptionalColumns) {
  const std::vector<std::array<const char*, 3>> names = {
      {"edge_weight", "edge_time", "edge_reltype"},
      {"edge-weight", "edge_year", "edge_type"}};
  for (const auto& [weight, time, type] : names) {
    SCOPED_TRACE(weight);
    std::filesystem::remove_all(directory_);
    Homogeneous();
    Write(StrCat("raw/", weight, ".csv.gz"), "0.5\n2\n");
    Write(StrCat("raw/", time, ".csv"), "30\n40\n");
    Write(StrCat("raw/", type, ".csv"), "5\n6\n");
    const bool first = std::string(time) == "edge_time";
    Write(first ? "raw/edge-feat.csv" : "raw/edge_feat.csv", "7,8\n9,10\n");
    Write(first ? "raw/node_time.csv" : "raw/node_year.csv", "1\n2\n3\n");
    const auto manifest = Import();
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const auto store = Store::Open(directory_ / "out").value();
    const Partition& part = *store->partition(0);
    EXPECT_THAT(part.nodes[0].time.As<int64_t>(), ElementsAreArray({1, 2, 3}));
    const EdgeColumns& edges = part.edges[0];
    EXPECT_THAT(edges.in.weight.As<float>(), ElementsAreArray({0.5f, 2.f}));
    EXPECT_THAT(edges.in.time.As<int64_t>(), ElementsAreArray({30, 40}));
    EXPECT_THAT(edges.in.type.As<int32_t>(), ElementsAreArray({5, 6}));
    EXPECT_THAT(edges.feature.As<float>(), ElementsAreArray({7, 8, 9, 10}));
  }
}

TEST_F(OgbTest, TakesThePreferredOfTwoNames) {
  Write("raw/edge_time.csv", "30\n40\n");
  Write("raw/edge_year.csv", "31\n41\n");
  Write("raw/edge_reltype.csv", "5\n6\n");
  Write("raw/edge_type.csv", "7\n8\n");
  ASSERT_TRUE(Import().ok());
  const auto store = Store::Open(directory_ / "out").value();
  const NeighborLists& in = store->partition(0)->edges[0].in;
  EXPECT_THAT(in.time.As<int64_t>(), ElementsAreArray({30, 40}));
  EXPECT_THAT(in.type.As<int32_t>(), ElementsAreArray({5, 6}));
}

// All files but the edges and the counts may be absent.
TEST_F(OgbTest, ReadsAGraphWithoutColumns) {
  std::filesystem::remove_all(directory_ / "in");
  Write("raw/num-node-list.csv", "3\n");
  Write("raw/edge.csv", "0,1\n2,1\n");
  const auto manifest = Import();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_FALSE(manifest->schema.node_types[0].feature.present());
  EXPECT_FALSE(manifest->schema.node_types[0].label.present());
  EXPECT_FALSE(manifest->schema.node_types[0].has_time);
  EXPECT_FALSE(manifest->schema.relations[0].has_weight);
  EXPECT_FALSE(manifest->schema.relations[0].has_type);
  EXPECT_TRUE(manifest->splits.empty());
  const auto refused = Import({directory_ / "in", "time", {}});
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("in/split/time: no such split; there are none"));
}

TEST_F(OgbTest, TakesFeaturesFromOtherFiles) {
  const std::string file = directory_ / "in/own.npy";
  ASSERT_TRUE(
      WriteNpy(file, Array::Adopt(std::vector<float>{0.25, 0.5, 0.75})).ok());
  for (const char* type : {"", "node"}) {
    SCOPED_TRACE(type);
    Write("raw/node-feat.csv.gz", "not a number\n");  // is not read
    const auto manifest = Import({directory_ / "in", "", {{type, file}}});
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const auto store = Store::Open(directory_ / "out").value();
    EXPECT_THAT(store->partition(0)->nodes[0].feature.As<float>(),
                ElementsAreArray({0.25f, 0.5f, 0.75f}));
    std::filesystem::remove_all(directory_ / "out");
  }
  const auto refusal = [&](const char* type) {
    const OgbInput input{directory_ / "in", "", {{type, file}}};
    return std::string(Import(input).status().message());
  };
  EXPECT_EQ(refusal("b"), StrCat("features b=", file,
                                 ": give TYPE=FILE with a node type of this "
                                 "graph: node"));
  Heterogeneous();
  ASSERT_TRUE(WriteNpy(file, Array::Adopt(std::vector<float>{1, 2})).ok());
  EXPECT_EQ(refusal(""), StrCat("features ", file,
                                ": give TYPE=FILE with a node type of this "
                                "graph: b, a, c"));
  std::filesystem::remove_all(directory_ / "in/raw/node-feat/a");
  const auto manifest = Import({directory_ / "in", "", {{"a", file}}});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const auto store = Store::Open(directory_ / "out").value();
  EXPECT_THAT(store->partition(0)->nodes[1].feature.As<float>(),
              ElementsAreArray({1.f, 2.f}));
}

TEST_F(OgbTest, LeavesOutTheSplitsIfTheImportMakesThem) {
  ImportOptions options;
  options.split_fractions = {0.5, 0.25, 0.25};
  const auto graph = OpenOgb({directory_ / "in", "", {}}, options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(graph->splits.empty());
}

TEST_F(OgbTest, FindsColumnsOfTypesWithoutFlags) {
  Heterogeneous();
  for (const char* flags : {"raw/nodetype-has-feat", "raw/nodetype-has-label",
                            "split/only/nodetype-has-split"}) {
    std::filesystem::remove(directory_ / "in" / StrCat(flags, ".csv.gz"));
  }
  const auto manifest = Import();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const std::vector<NodeType>& types = manifest->schema.node_types;
  EXPECT_TRUE(types[1].feature.present());
  EXPECT_FALSE(types[0].feature.present());
  EXPECT_TRUE(types[0].label.present());
  EXPECT_FALSE(types[1].label.present());
  ASSERT_EQ(manifest->splits.size(), 3u);
  EXPECT_EQ(manifest->splits[0].type, 0);
}

TEST_F(OgbTest, FlagsSayWhichTypesHaveColumns) {
  Heterogeneous();
  Write("raw/nodetype-has-feat.csv.gz", "c,b\nFalse,False\n");
  Write("raw/nodetype-has-label.csv.gz", "c,a,b\nFalse,False,False\n");
  Write("split/only/nodetype-has-split.csv.gz", "a,b\nFalse,False\n");
  const auto manifest = Import();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  for (const NodeType& type : manifest->schema.node_types) {
    EXPECT_FALSE(type.feature.present());
    EXPECT_FALSE(type.label.present());
  }
  EXPECT_TRUE(manifest->splits.empty());
}

TEST_F(OgbTest, NamesWhatIsWrongInAFolderOfTypes) {
  struct Case {
    const char *file, *text, *what;  // without a text, the file is removed
  };
  for (const Case& c :
       {Case{"raw/triplet-type-list.csv.gz", "b,r,a\na,s\n",
             "triplet-type-list.csv.gz: line 2: 2 fields; expected source, "
             "relation and destination"},
        Case{"raw/triplet-type-list.csv.gz", "b,r,a\na,q,b\n",
             "raw/relations/a___q___b: no such folder, but "},
        Case{"raw/triplet-type-list.csv.gz", "b,r,a\na,q,b\n",
             "triplet-type-list.csv.gz line 2 names this relation"},
        Case{"raw/num-node-dict.csv.gz", "c,a,b\n1,2\n",
             "num-node-dict.csv.gz: expected a line of node types and a line "
             "with as many values; found 2 lines"},
        Case{"raw/num-node-dict.csv.gz", "c,a,b\n1,2,3\n4,5,6\n",
             "as many values; found 3 lines"},
        Case{"raw/num-node-dict.csv.gz", "c,b\n1,3\n",
             "num-node-dict.csv.gz: node type a of a relation is not listed"},
        Case{"raw/num-node-dict.csv.gz", "c,a,b\n1,x,3\n",
             "num-node-dict.csv.gz: line 2: \"x\" is not a count"},
        Case{"raw/num-node-dict.csv.gz", "c,a,b\n1,2,-3\n",
             "num-node-dict.csv.gz: line 2: \"-3\" is not a count"},
        Case{"raw/num-node-dict.csv.gz", nullptr,
             "num-node-dict.csv.gz: no such file"},
        Case{"raw/nodetype-has-feat.csv.gz", "c,a,b\nFalse,true,False\n",
             "nodetype-has-feat.csv.gz: line 2: \"true\" of a is neither True "
             "nor False"},
        Case{"raw/nodetype-has-label.csv.gz", "c,a,b\nFalse,False,1\n",
             "nodetype-has-label.csv.gz: line 2: \"1\" of b is neither"},
        Case{"raw/node-feat/a/node-feat.csv.gz", nullptr,
             "raw/node-feat/a/node-feat.csv.gz: no such file"},
        Case{"raw/node-label/b/node-label.csv.gz", nullptr,
             "raw/node-label/b/node-label.csv.gz: no such file"},
        Case{"raw/relations/a___s___b/edge.csv.gz", nullptr,
             "a___s___b/edge.csv.gz: no such file"},
        Case{"raw/relations/b___r___a/num-edge-list.csv.gz", "2\n",
             "edge.csv.gz: more edges than the 2 that "},
        Case{"split/only/b/valid.csv.gz", nullptr,
             "split/only/b/valid.csv.gz: no such file"}}) {
    SCOPED_TRACE(c.what);
    Heterogeneous();
    if (c.text == nullptr) {
      std::filesystem::remove(directory_ / "in" / c.file);
    } else {
      Write(c.file, c.text);
    }
    ExpectRefusal(c.what);
  }
}

TEST_F(OgbTest, ReadsPlainCsv) {
  std::filesystem::remove(directory_ / "in/raw/edge.csv.gz");
  Write("raw/edge.csv", "0,1\r\n2,1");
  const auto manifest = Import();
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->schema.relations[0].edge_count, 2);
}

TEST_F(OgbTest, ReadsShippedCora) {
  const auto manifest = Import({MILLRACE_TEST_DATA "/cora", "", {}});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const NodeType& nodes = manifest->schema.node_types[0];
  EXPECT_EQ(nodes.count, 2708);
  EXPECT_EQ(nodes.feature.row_shape[0], 1433);
  EXPECT_EQ(nodes.label.dtype, DType::kInt64);
  EXPECT_EQ(manifest->schema.relations[0].edge_count, 10556);
  ASSERT_EQ(manifest->splits.size(), 3);
  EXPECT_EQ(manifest->splits[0].count, 140);
}

TEST_F(OgbTest, NamesThePositionOfBadInput) {
  ExpectRefusal("raw/edge.csv.gz", "0,1\n2\n",
                "edge.csv.gz: line 2: 1 field where every line must have 2");
  ExpectRefusal("raw/edge.csv.gz", "0,1\n2,1,0\n", "line 2: 3 fields");
  ExpectRefusal("raw/edge.csv.gz", "0,1\n3,1\n",
                "line 2: source 3 is out of range");
  ExpectRefusal("raw/edge.csv.gz", "0,-1\n2,1\n",
                "line 1: destination -1 is out of range");
  ExpectRefusal("raw/edge.csv.gz", "0,1\n2,x\n",
                "line 2: field 2 is \"x\", not an integer");
  ExpectRefusal("raw/edge.csv.gz", "0,1\n", "1 edges, but");
  ExpectRefusal("raw/node-feat.csv.gz", "1,2\n3,inf\n5,6\n",
                "line 2: column 2 is infinite");
  ExpectRefusal("raw/node-feat.csv.gz", "1,2\n3,4\n", "2 rows for 3 nodes");
  ExpectRefusal("raw/node-feat.csv.gz", "", "the file is empty");
  ExpectRefusal("raw/node-label.csv.gz", "1\n\n2\n", "line 2: field 1 is \"\"");
  ExpectRefusal("split/random/train.csv.gz", "2\n0\n2\n",
                "line 3: node 2 occurs twice");
  ExpectRefusal("split/random/train.csv.gz", "2\n3\n",
                "line 2: node 3 is out of range");
  ExpectRefusal("raw/num-node-list.csv.gz", "3\n4\n", "2 graphs");
  ExpectRefusal("raw/num-node-list.csv.gz", "3\n4\n",
                "num-node-list.csv.gz: 2 lines, so this is a collection of 2");
  ExpectRefusal("raw/num-node-list.csv.gz", "3,4\n",
                "num-node-list.csv.gz: line 1: 2 fields; expected 1");
  ExpectRefusal("raw/num-node-list.csv.gz", "-3\n",
                "num-node-list.csv.gz: line 1: \"-3\" is not a count");
  ExpectRefusal("raw/num-edge-list.csv.gz", "x\n",
                "num-edge-list.csv.gz: line 1: \"x\" is not a count");
  ExpectRefusal("raw/edge_weight.csv.gz", "0.5\n1e-50\n",
                "edge_weight.csv.gz: line 2: weight 1e-50 is below the");
}

// How many lines a text file has is known only once it has been read.
TEST_F(OgbTest, EachEdgeAndNodeNeedsALine) {
  for (const char* column :
       {"edge_weight", "edge_time", "edge_type", "edge_feat"}) {
    const std::string file = StrCat("raw/", column, ".csv");
    ExpectRefusal(file, "1\n", StrCat(column, ".csv: 1 rows, but ").c_str());
    ExpectRefusal(file, "1\n",
                  "edge.csv.gz has at least 2 edges; each edge needs a row");
    ExpectRefusal(
        file, "1\n2\n3\n",
        StrCat(column, ".csv: more rows than the 2 edges of ").c_str());
    std::filesystem::remove(directory_ / "in" / file);
  }
  ExpectRefusal("raw/node_year.csv", "1\n2\n",
                "node_year.csv: 2 rows for 3 nodes; each node needs a row");
  ExpectRefusal("raw/node_year.csv", "1\n2\n3\n4\n",
                "node_year.csv: 4 rows for 3 nodes");
  std::filesystem::remove(directory_ / "in/raw/node_year.csv");
  ExpectRefusal("raw/node-label.csv.gz", "1\n2\n",
                "node-label.csv.gz: 2 rows for 3 nodes");
  ExpectRefusal("raw/node-feat.csv.gz", "1\n2\n3\n4\n",
                "node-feat.csv.gz: 4 rows for 3 nodes");
}

// The file is refused before as much is written as it claims to need.
TEST_F(OgbTest, RefusesWildNodeCounts) {
  ExpectRefusal("raw/num-node-list.csv.gz", "1000000000000\n",
                "3 rows for 1000000000000 nodes");
  Heterogeneous();
  Write("raw/num-node-dict.csv.gz", "c,a,b\n1000000000000,2,3\n");
  ExpectRefusal(
      "node type c would have 1000000000000 nodes (ids 0 to 999999999999), "
      "but only 0 edges touch one");
}

TEST_F(OgbTest, RefusesWeightsBeyondAllFloats) {
  for (const char* weight : {"1e-400", "0.1e-323", "1e400", "-1e400"}) {
    ExpectRefusal("raw/edge_weight.csv.gz", StrCat("0.5\n", weight, "\n"),
                  StrCat("edge_weight.csv.gz: line 2: field 1 is \"", weight,
                         "\", not a number (float64")
                      .c_str());
  }
  ExpectRefusal("raw/edge_weight.csv.gz", "5e-324\n1\n",
                "line 1: weight 4.94066e-324 is below the");
  Homogeneous();
  Write("raw/edge_weight.csv.gz", "0e400\n-0.0e-400\n");
  EXPECT_TRUE(Import().ok());
}

TEST_F(OgbTest, RefusesTruncatedAndPlainGzip) {
  const std::filesystem::path edges = directory_ / "in/raw/edge.csv.gz";
  std::filesystem::resize_file(edges, std::filesystem::file_size(edges) - 6);
  ExpectRefusal("truncated gzip data");
  std::ofstream(edges, std::ios::binary) << "0,1\n2,1\n";
  ExpectRefusal("not gzip data");
  std::filesystem::remove(edges);
  ExpectRefusal("edge.csv.gz: no such file");
}

// The limit is for a line, not a file: a few KB of gzip may expand to
// gigabytes.
TEST_F(OgbTest, LimitsTheLengthOfALine) {
  const std::string blanks(LineReader::kMaxLineBytes - 3, ' ');
  Write("raw/edge.csv.gz", "0,1\n" + blanks + "2,1\n");
  EXPECT_TRUE(Import().ok());
  std::filesystem::remove_all(directory_ / "out");
  for (const char* end : {"\n", ""}) {
    ExpectRefusal(
        "raw/edge.csv.gz", "0,1\n" + blanks + "2,01" + end,
        "edge.csv.gz: line 2 is longer than 33554432 bytes, the limit "
        "of a line\ngive a text file");
  }
}

TEST_F(OgbTest, NamesFilesThatAreMissing) {
  for (const char* file :
       {"raw/num-node-list", "raw/edge", "split/random/train",
        "split/random/valid", "split/random/test"}) {
    SCOPED_TRACE(file);
    Homogeneous();
    const std::string name = StrCat(file, ".csv.gz");
    std::filesystem::remove(directory_ / "in" / name);
    ExpectRefusal(StrCat(name, ": no such file").c_str());
  }
  std::filesystem::remove_all(directory_ / "in/raw");
  ExpectRefusal("in/raw: no such folder; an OGB folder has raw/");
}

TEST_F(OgbTest, AsksForOneOfSeveralSplits) {
  for (const char* part : {"train", "valid", "test"}) {
    Write(std::string("split/time/") + part + ".csv.gz", "1\n");
  }
  ExpectRefusal("split is needed: ");
  ExpectRefusal("in/split has several splits: random, time");
  const auto third = Import({directory_ / "in", "third", {}});
  EXPECT_EQ(third.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(third.status().message()),
              HasSubstr("in/split/third: no such split; the splits are random, "
                        "time"));
  const auto manifest = Import({directory_ / "in", "time", {}});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->splits[0].count, 1);
}

}  // namespace
}  // namespace millrace
