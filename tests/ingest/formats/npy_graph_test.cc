// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/formats/npy_graph.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/ingest/split_import.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpyGraphTest : public testing::DirectoryTest {
 protected:
  // Writes NAME.npy; without a shape, a list.
  template <typename T>
  std::string Column(const std::string& name, std::vector<T> values,
                     std::vector<int64_t> shape = {}) {
    if (shape.empty()) shape = {static_cast<int64_t>(values.size())};
    const std::filesystem::path path = directory_ / (name + ".npy");
    std::filesystem::remove(path);
    const Array array = Array::Adopt(std::move(values));
    const auto written = WriteNpy(
        path,
        Array::Borrow(array.dtype(), std::move(shape), array.data(), nullptr));
    EXPECT_TRUE(written.ok()) << written.status();
    return path.string();
  }
  std::string Mask(const std::string& name, const std::vector<uint8_t>& mask) {
    const std::string path = directory_ / (name + ".npy");
    std::string bytes =
        FormatNpyHeader(DType::kUint8, {static_cast<int64_t>(mask.size())});
    bytes.replace(bytes.find("|u1"), 3, "|b1");
    bytes.append(mask.begin(), mask.end());
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // Three edges from a to b, and three within b.
  NpyInput TwoRelations() {
    NpyInput input;
    input.edges = {
        {"a__x__b", Column<int64_t>("x", {0, 2, 1, 1, 0, 1}, {2, 3})},
        {"b__y__b", Column<int64_t>("y", {1, 3, 0, 2, 1, 0}, {2, 3})}};
    return input;
  }
  NpyInput OneRelation() {
    NpyInput input;
    input.edges = {{"", Column<int64_t>("e", {0, 2, 1, 1, 0, 1}, {2, 3})}};
    return input;
  }

  static void ExpectMessage(const NpyInput& input, const std::string& what) {
    const auto graph = OpenNpy(input);
    ASSERT_FALSE(graph.ok()) << what;
    EXPECT_THAT(std::string(graph.status().message()), HasSubstr(what));
  }
};

std::vector<int64_t> Values(const std::shared_ptr<const RowSource>& rows) {
  if (rows == nullptr) return {-77};
  return ReadIntegers(*rows).value_or(std::vector<int64_t>{-78});
}

TEST_F(NpyGraphTest, NumbersTypesByTheirFirstRelation) {
  NpyInput input = TwoRelations();
  input.edges.push_back({"c__z__a", Column<int32_t>("z", {8, 3}, {2, 1})});
  input.node_counts["d"] = 5;
  const auto graph = OpenNpy(input);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::pair<std::string, int64_t>> nodes;
  for (const RawNodes& type : graph->nodes) {
    nodes.emplace_back(type.name, type.count);
  }
  // Without counts or columns, the largest id at either end of any relation.
  EXPECT_THAT(nodes, ElementsAre(std::pair("a", 4), std::pair("b", 4),
                                 std::pair("c", 9), std::pair("d", 5)));
  EXPECT_FALSE(graph->nodes[0].count_is_chosen);
  EXPECT_TRUE(graph->nodes[3].count_is_chosen);
  EXPECT_EQ(graph->nodes[3].count_reason, "that number was given");
  ASSERT_EQ(graph->edges.size(), 3u);
  EXPECT_EQ(graph->RelationName(graph->edges[1]), "b__y__b");
  EXPECT_EQ(graph->RelationName(graph->edges[2]), "c__z__a");
  EXPECT_THAT(Values(graph->edges[1].endpoints), ElementsAre(1, 2, 3, 1, 0, 0));
}

TEST_F(NpyGraphTest, NamesOneRelationWithoutAName) {
  const auto graph = OpenNpy(OneRelation());
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->nodes[0].count, 3);
  EXPECT_EQ(graph->RelationName(graph->edges[0]), "node__to__node");
}

TEST_F(NpyGraphTest, FindsTheLargestIdAtEitherEnd) {
  struct Case {
    std::vector<int64_t> ends;  // sources, then destinations
    int64_t count;
  };
  const int64_t largest = int64_t{1} << 62;
  for (const Case& c :
       {Case{{5, 0, 1, 2}, 6}, Case{{0, 1, 2, 7}, 8}, Case{{-4, -1, -1, -9}, 0},
        Case{{-1, 0, -1, -1}, 1}, Case{{0, largest, 0, 0}, largest + 1}}) {
    NpyInput input;
    input.edges = {{"", Column("ends", c.ends, {2, 2})}};
    const auto graph = OpenNpy(input);
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->nodes[0].count, c.count);
  }
  NpyInput many;
  std::vector<int64_t> ends(2 * 40'000, 3);
  ends[39'999] = 11;  // beyond the edges that are read at once
  many.edges = {{"", Column("ends", ends, {2, 40'000})}};
  EXPECT_EQ(OpenNpy(many)->nodes[0].count, 12);
  ends[39'998] = largest + 1;
  many.edges = {{"", Column("ends", ends, {2, 40'000})}};
  ExpectMessage(many, StrCat("ends.npy: edge 39998: node ", largest + 1,
                             " is above the largest id, 2^62"));
}

TEST_F(NpyGraphTest, TakesGivenCountsBeforeRowsBeforeIds) {
  NpyInput input = TwoRelations();
  input.node_counts["b"] = 0;  // the import says that ids are out of range
  auto graph = OpenNpy(input);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->nodes[0].count, 3);
  EXPECT_EQ(graph->nodes[1].count, 0);

  const std::string one = Column<float>("one", {1}),
                    two = Column<int32_t>("two", {1, 2}),
                    three = Column<int64_t>("three", {1, 2, 3});
  input.features["b"] = two;
  EXPECT_EQ(OpenNpy(input)->nodes[1].count, 0);
  input.node_counts.clear();
  input.labels["b"] = three;
  input.node_times["b"] = three;
  graph = OpenNpy(input);
  EXPECT_EQ(graph->nodes[1].count, 2);
  EXPECT_EQ(graph->nodes[1].count_reason, two + " has 2 rows");
  input.features.clear();
  input.labels["b"] = one;
  graph = OpenNpy(input);
  EXPECT_EQ(graph->nodes[1].count, 1);
  EXPECT_EQ(graph->nodes[1].count_reason, one + " has 1 row");
  input.labels.clear();
  EXPECT_EQ(OpenNpy(input)->nodes[1].count, 3);
}

TEST_F(NpyGraphTest, PutsEachColumnInItsPlace) {
  NpyInput input = TwoRelations();
  input.features["a"] = Column<int64_t>("f", {1, 2, 3});
  input.labels["b"] = Column<int64_t>("l", {4, 5, 6, 7});
  input.node_times["a"] = Column<int64_t>("t", {7, 8, 9});
  input.edge_weights["b__y__b"] = Column<int64_t>("w", {10, 11, 12});
  input.edge_times["a__x__b"] = Column<int64_t>("et", {13, 14, 15});
  input.edge_types["b__y__b"] = Column<int64_t>("ty", {16, 17, 18});
  input.edge_features["a__x__b"] = Column<int64_t>("ef", {19, 20, 21});
  const auto graph = OpenNpy(input);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const RawNodes &a = graph->nodes[0], &b = graph->nodes[1];
  EXPECT_THAT(Values(a.feature), ElementsAre(1, 2, 3));
  EXPECT_THAT(Values(b.label), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(Values(a.time), ElementsAre(7, 8, 9));
  EXPECT_EQ(a.label, nullptr);
  EXPECT_EQ(b.feature, nullptr);
  EXPECT_EQ(b.time, nullptr);
  const RawEdges &x = graph->edges[0], &y = graph->edges[1];
  EXPECT_THAT(Values(y.weight), ElementsAre(10, 11, 12));
  EXPECT_THAT(Values(x.time), ElementsAre(13, 14, 15));
  EXPECT_THAT(Values(y.type), ElementsAre(16, 17, 18));
  EXPECT_THAT(Values(x.feature), ElementsAre(19, 20, 21));
  for (const auto& none : {x.weight, x.type, y.time, y.feature}) {
    EXPECT_EQ(none, nullptr);
  }
}

TEST_F(NpyGraphTest, OpensSplitsOfNodesAndEdges) {
  NpyInput input = TwoRelations();
  input.train["a"] = Column<int64_t>("train", {2, 0});
  input.valid["b"] = Mask("valid", {0, 1, 0, 1});
  input.test["a__x__b"] = Column<int64_t>("pairs", {0, 1, 2, 0, 1, 1}, {3, 2});
  input.train["b__y__b"] = Column<int64_t>("ids", {2, 0});
  input.valid["b__y__b"] = Mask("edges", {1, 0, 1});
  const auto graph = OpenNpy(input);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->splits.size(), 2u);
  EXPECT_EQ(graph->splits[0].name, "train");
  EXPECT_EQ(graph->splits[0].type, 0);
  EXPECT_THAT(Values(graph->splits[0].ids), ElementsAre(2, 0));
  EXPECT_EQ(graph->splits[1].name, "valid");
  EXPECT_EQ(graph->splits[1].type, 1);
  EXPECT_THAT(Values(graph->splits[1].ids), ElementsAre(1, 3));
  ASSERT_EQ(graph->edge_splits.size(), 3u);
  const RawEdgeSplit &train = graph->edge_splits[0],
                     &valid = graph->edge_splits[1],
                     &test = graph->edge_splits[2];
  EXPECT_EQ(train.name, "train");
  EXPECT_EQ(train.edges, 1u);
  EXPECT_EQ(train.endpoints, nullptr);
  EXPECT_THAT(Values(train.ids), ElementsAre(2, 0));
  EXPECT_EQ(valid.name, "valid");
  EXPECT_THAT(Values(valid.ids), ElementsAre(0, 2));
  EXPECT_EQ(test.name, "test");
  EXPECT_EQ(test.edges, 0u);
  EXPECT_EQ(test.ids, nullptr);
  EXPECT_THAT(Values(test.endpoints), ElementsAre(0, 1, 2, 0, 1, 1));
}

TEST_F(NpyGraphTest, SaysWhichTypesAndRelationsThereAre) {
  const std::string ids = Column<int64_t>("ids", {0, 1, 2});
  using Field = std::pair<const char*, NamedFiles NpyInput::*>;
  const std::vector<Field> of_nodes = {
      {"features", &NpyInput::features},     {"labels", &NpyInput::labels},
      {"node_times", &NpyInput::node_times}, {"train", &NpyInput::train},
      {"valid", &NpyInput::valid},           {"test", &NpyInput::test}};
  const std::vector<Field> of_edges = {
      {"edge_weights", &NpyInput::edge_weights},
      {"edge_times", &NpyInput::edge_times},
      {"edge_types", &NpyInput::edge_types},
      {"edge_features", &NpyInput::edge_features}};
  for (const auto& [field, files] : of_nodes) {
    NpyInput input = TwoRelations();
    (input.*files)["c"] = ids;
    ExpectMessage(input, StrCat(field, ": no node type \"c\"; give TYPE=... ",
                                "with one of: a, b"));
    (input.*files) = {{"", ids}};
    ExpectMessage(input, StrCat(field, ": a node type is needed; give ",
                                "TYPE=... with one of: a, b"));
  }
  for (const auto& [field, files] : of_edges) {
    NpyInput input = TwoRelations();
    (input.*files)["b__x__a"] = ids;
    const std::string end =
        "; give SRC__NAME__DST=FILE with one of: a__x__b, b__y__b";
    ExpectMessage(input, StrCat(field, ": no relation \"b__x__a\"", end));
    (input.*files) = {{"", ids}};
    ExpectMessage(input, StrCat(field, ": a relation is needed", end));
    input = OneRelation();
    (input.*files)[""] = Column<int64_t>("four", {1, 2, 3, 4});
    ExpectMessage(input, "four.npy: 4 rows, but ");
    ExpectMessage(input, "e.npy has 3 edges; each edge needs a row");
  }
  NpyInput input = TwoRelations();
  input.test["a__none__b"] = ids;
  ExpectMessage(input, "test: no relation \"a__none__b\"; give ");
  input = TwoRelations();
  input.node_counts[""] = 3;
  ExpectMessage(input, "node_counts: a node type is needed; give TYPE=...");
}

TEST_F(NpyGraphTest, RefusesWhatIsNoGraph) {
  ExpectMessage({}, "edges is needed: a graph needs at least one relation");
  NpyInput input = TwoRelations();
  const std::string file = input.edges[1].second;
  input.edges[1].first = "";
  ExpectMessage(input, StrCat("edges ", file,
                              ": with several relations each needs a name: "
                              "SRC__NAME__DST=FILE"));
  input.edges[1].first = "b_y";
  ExpectMessage(input, "b_y");
  input = OneRelation();
  input.node_counts[""] = -1;
  ExpectMessage(input, "node_counts -1: a count must not be negative");
  input = OneRelation();
  input.test["node__to__node"] = Mask("mask", {1, 0});
  ExpectMessage(input, "mask.npy: a mask of 2 elements for 3 edges");
  input.test["node__to__node"] = Column<float>("half", {0.5f});
  ExpectMessage(input, "half.npy: dtype float32, but integers are needed");
}

}  // namespace
}  // namespace millrace
