// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/tu.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/graph/store.h"
#include "common/ingest/importer.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class TuTest : public testing::DirectoryTest {
 protected:
  // Three graphs; the nodes of the first two are interleaved.
  void SetUp() override {
    DirectoryTest::SetUp();
    std::filesystem::create_directories(directory_ / "in");
    Write("A", "1, 3\n3, 1\n2, 4\n5, 5\n1,3\n");
    Write("graph_indicator", "1\n2\n1\n2\n3\n");
    Write("graph_labels", "1\n-1\n1\n");
    Write("edge_labels", "4\n5\n6\n7\n8\n");
  }

  void Write(const std::string& part, const std::string& text) {
    std::ofstream(directory_ / "in" / ("DS_" + part + ".txt")) << text;
  }

  absl::StatusOr<std::unique_ptr<Store>> Import(
      TuFeatures features = TuFeatures::kDefault,
      const ImportOptions& options = {}) {
    std::filesystem::remove_all(directory_ / "out");
    const auto graph = OpenTu({directory_ / "in", features}, options);
    if (!graph.ok()) return graph.status();
    const auto manifest = ImportGraph(*graph, options, directory_ / "out");
    if (!manifest.ok()) return manifest.status();
    return Store::Open(directory_ / "out");
  }

  void ExpectRefusal(const std::string& part, const std::string& text,
                     const char* what) {
    SCOPED_TRACE(part);
    Write(part, text);
    const auto store = Import();
    ASSERT_FALSE(store.ok());
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(what));
    std::filesystem::remove_all(directory_);
    SetUp();
  }
};

TEST_F(TuTest, ReadsCollectionAsOneGraph) {
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  const Schema& schema = (*store)->schema();
  ASSERT_EQ(schema.node_types.size(), 2);
  EXPECT_EQ(schema.node_types[0].name, "node");
  EXPECT_EQ(schema.node_types[0].count, 5);
  EXPECT_FALSE(schema.node_types[0].label.present());
  EXPECT_EQ(schema.node_types[1].name, "graph");
  EXPECT_FALSE(schema.node_types[1].feature.present());
  ASSERT_EQ(schema.relations.size(), 2);
  EXPECT_EQ(schema.RelationName(0), "node__to__node");
  EXPECT_EQ(schema.RelationName(1), "node__in__graph");
  const Partition& part = *(*store)->partition(0);
  EXPECT_THAT(part.nodes[1].label.As<int64_t>(), ElementsAreArray({1, 0, 1}));
  EXPECT_THAT(part.nodes[0].feature.As<float>(),
              ElementsAreArray({1.f, 1.f, 1.f, 1.f, 1.f}));
  const NeighborLists& in = part.edges[0].in;
  EXPECT_THAT(in.indptr.As<int64_t>(), ElementsAreArray({0, 1, 1, 3, 4, 5}));
  EXPECT_THAT(in.indices.As<uint32_t>(), ElementsAreArray({2, 0, 0, 1, 4}));
  EXPECT_THAT(in.edge_id.As<int64_t>(), ElementsAreArray({1, 0, 4, 2, 3}));
  EXPECT_THAT(in.type.As<int32_t>(), ElementsAreArray({5, 4, 8, 6, 7}));
  const NeighborLists& members = part.edges[1].in;
  EXPECT_THAT(members.indptr.As<int64_t>(), ElementsAreArray({0, 2, 4, 5}));
  EXPECT_THAT(members.indices.As<uint32_t>(),
              ElementsAreArray({0, 2, 1, 3, 4}));
  EXPECT_THAT(members.edge_id.As<int64_t>(), ElementsAreArray({0, 2, 1, 3, 4}));
}

TEST_F(TuTest, MakesFeaturesFromDegrees) {
  const auto store = Import(TuFeatures::kDegree);
  ASSERT_TRUE(store.ok()) << store.status();
  // In-degrees are 1, 0, 2, 1, 1.
  EXPECT_THAT((*store)->partition(0)->nodes[0].feature.As<float>(),
              ElementsAreArray({0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0}));
}

// The degrees equal the lengths of the in-lists, whatever options change the
// graph.
TEST_F(TuTest, DegreesAreThoseOfTheImportedGraph) {
  for (int bits = 0; bits < 12; ++bits) {
    SCOPED_TRACE(bits);
    ImportOptions options;
    options.undirected = (bits & 1) != 0;
    options.coalesce = (bits & 2) != 0;
    options.self_loops = static_cast<SelfLoops>(bits / 4);
    const auto store = Import(TuFeatures::kDegree, options);
    ASSERT_TRUE(store.ok()) << store.status();
    const Partition& part = *(*store)->partition(0);
    const auto indptr = part.edges[0].in.indptr.As<int64_t>();
    const int64_t width = (*store)->schema().node_types[0].feature.row_shape[0];
    std::vector<float> expected(5 * width, 0);
    int64_t largest = 0;
    for (int64_t node = 0; node < 5; ++node) {
      const int64_t degree = indptr[node + 1] - indptr[node];
      ASSERT_LT(degree, width);
      largest = std::max(largest, degree);
      expected[node * width + degree] = 1;
    }
    EXPECT_EQ(width, largest + 1);
    EXPECT_THAT(part.nodes[0].feature.As<float>(), ElementsAreArray(expected));
  }
  ImportOptions options;
  options.edge_split_fractions = {0.5, 0.25, 0.25};
  options.edge_split_type = "node__to__node";
  EXPECT_THAT(
      std::string(Import(TuFeatures::kDegree, options).status().message()),
      HasSubstr("node_features degree: counts the edges that"));
}

TEST_F(TuTest, MakesFeaturesFromLabelColumns) {
  Write("node_labels", "7, 0\n-1, 0\n7, 5\n3, 0\n3, 5\n");
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  // Values are -1, 3, 7 and 0, 5.
  EXPECT_THAT((*store)->partition(0)->nodes[0].feature.As<float>(),
              ElementsAreArray({0, 0, 1, 1, 0,  //
                                1, 0, 0, 1, 0,  //
                                0, 0, 1, 0, 1,  //
                                0, 1, 0, 1, 0,  //
                                0, 1, 0, 0, 1}));
}

TEST_F(TuTest, ReadsAttributes) {
  Write("node_attributes", "0.5, 1\n2, 3\n4, 5\n6, 7\n8, -9e1\n");
  Write("edge_attributes", "1\n2\n3\n4\n5\n");
  const auto store = Import(TuFeatures::kAttributes);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT((*store)->partition(0)->nodes[0].feature.As<float>(),
              ElementsAreArray({0.5, 1., 2., 3., 4., 5., 6., 7., 8., -90.}));
  EXPECT_THAT((*store)->partition(0)->edges[0].feature.As<float>(),
              ElementsAreArray({2, 1, 5, 3, 4}));
}

TEST_F(TuTest, ReadsTargetsOfRegression) {
  std::filesystem::remove(directory_ / "in/DS_graph_labels.txt");
  Write("graph_attributes", "0.5\n1.5\n-2\n");
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT((*store)->partition(0)->nodes[1].label.As<float>(),
              ElementsAreArray({0.5, 1.5, -2.}));
}

// Labels are preferred, and one of the two is needed.
TEST_F(TuTest, TakesLabelsBeforeTargetsOfRegression) {
  Write("graph_attributes", "0.5\n1.5\n");
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->schema().node_types[1].label.dtype, DType::kInt64);
  std::filesystem::remove(directory_ / "in/DS_graph_labels.txt");
  EXPECT_THAT(std::string(Import().status().message()),
              HasSubstr("graph 3 is out of range: "));
  EXPECT_THAT(std::string(Import().status().message()),
              HasSubstr("DS_graph_attributes.txt has 2 lines, graphs are 1 to "
                        "2"));
  std::filesystem::remove(directory_ / "in/DS_graph_attributes.txt");
  EXPECT_THAT(
      std::string(Import().status().message()),
      HasSubstr("DS_graph_labels.txt: no such file, with or without .gz"));
}

TEST_F(TuTest, ReadsSeveralTargetsOfEachGraph) {
  std::filesystem::remove(directory_ / "in/DS_graph_labels.txt");
  Write("graph_attributes", "1, 2\n3, 4\n5, 6.5\n");
  const auto store = Import();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->schema().node_types[1].count, 3);
  EXPECT_THAT((*store)->partition(0)->nodes[1].label.As<float>(),
              ElementsAreArray({1., 2., 3., 4., 5., 6.5}));
}

// Only edges that are held out at random are counted wrongly.
TEST_F(TuTest, DegreesGoWithEdgesDividedByTime) {
  ImportOptions options;
  options.edge_split_fractions = {0.5, 0.25, 0.25};
  options.edge_split_by = EdgeSplitBy::kTime;
  const auto graph = OpenTu({directory_ / "in", TuFeatures::kDegree}, options);
  EXPECT_TRUE(graph.ok()) << graph.status();
}

TEST_F(TuTest, SplitsGraphsByFractions) {
  ImportOptions options;
  options.split_fractions = {0.34, 0.33, 0.33};
  const auto store = Import(TuFeatures::kDefault, options);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_EQ((*store)->manifest().splits.size(), 3);
  for (const SplitInfo& split : (*store)->manifest().splits) {
    EXPECT_EQ(split.type, 1);
    EXPECT_EQ(split.count, 1);
  }
}

// The expected counts are those of the published collection.
TEST_F(TuTest, ReadsShippedMutag) {
  const auto graph = OpenTu({MILLRACE_TEST_DATA "/mutag"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto manifest = ImportGraph(*graph, {}, directory_ / "out");
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->schema.node_types[0].count, 3371);
  EXPECT_EQ(manifest->schema.node_types[0].feature.row_shape[0], 7);
  EXPECT_EQ(manifest->schema.node_types[1].count, 188);
  EXPECT_EQ(manifest->schema.relations[0].edge_count, 7442);
  EXPECT_EQ(manifest->schema.relations[1].edge_count, 3371);
}

TEST_F(TuTest, NamesThePositionOfBadInput) {
  ExpectRefusal("A", "1, 3\n0, 1\n",
                "DS_A.txt: line 2: node 0 is out of range");
  ExpectRefusal("A", "1, 6\n", "graph_indicator.txt has 5 lines");
  ExpectRefusal("A", "1, 3\n0, 1\n",
                "DS_graph_indicator.txt has 5 lines, nodes are 1 to 5");
  ExpectRefusal("graph_indicator", "0\n2\n1\n2\n3\n",
                "DS_graph_indicator.txt: line 1: graph 0 is out of range: ");
  ExpectRefusal("graph_indicator", "1\n2\n4\n2\n3\n",
                "DS_graph_labels.txt has 3 lines, graphs are 1 to 3");
  ExpectRefusal("A", "1, 2\n1 2\n", "line 2: 1 field");
  ExpectRefusal("graph_indicator", "1\n2\n4\n",
                "line 3: graph 4 is out of range");
  ExpectRefusal("A", "1, 3\n3, 2\n",
                "DS_A.txt: line 2: node 3 belongs to graph 1, node 2 to graph "
                "2 (");
  ExpectRefusal("graph_labels", "1\nx\n", "line 2: field 1 is \"x\"");
  ExpectRefusal("edge_labels", "1\n", "1 rows, but");
  ExpectRefusal("node_labels", "1\n2\n", "2 rows for 5 nodes");
  std::ofstream(directory_ / "in/OTHER_A.txt") << "1, 2\n";
  ExpectRefusal("A", "1, 2\n", "2 collections in one folder: DS, OTHER");
}

TEST_F(TuTest, NamesFilesThatAreMissing) {
  EXPECT_THAT(std::string(Import(TuFeatures::kLabels).status().message()),
              HasSubstr("DS_node_labels.txt: no such file"));
  EXPECT_THAT(std::string(Import(TuFeatures::kAttributes).status().message()),
              HasSubstr("DS_node_attributes.txt: no such file"));
  EXPECT_THAT(std::string(OpenTu({directory_ / "no"}).status().message()),
              HasSubstr("no such folder"));
  EXPECT_THAT(std::string(OpenTu({directory_}).status().message()),
              HasSubstr("no file DS_A.txt"));
  std::filesystem::remove(directory_ / "in/DS_graph_indicator.txt");
  EXPECT_THAT(std::string(Import().status().message()),
              HasSubstr("DS_graph_indicator.txt: no such file"));
}

}  // namespace
}  // namespace millrace
