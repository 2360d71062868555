// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/ogb.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/base/strings.h"
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
  ExpectRefusal("raw/edge_weight.csv.gz", "0.5\n1e-50\n",
                "edge_weight.csv.gz: line 2: weight 1e-50 is below the");
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

TEST_F(OgbTest, AsksForOneOfSeveralSplits) {
  for (const char* part : {"train", "valid", "test"}) {
    Write(std::string("split/time/") + part + ".csv.gz", "1\n");
  }
  ExpectRefusal("split is needed");
  const auto manifest = Import({directory_ / "in", "time", {}});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->splits[0].count, 1);
}

}  // namespace
}  // namespace millrace
