// SPDX-License-Identifier: Apache-2.0
// What is checked before an import writes anything.
#include "common/ingest/graph_checks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/ingest/node_counts.h"
#include "common/ingest/split_import.h"
#include "common/table/computed_rows.h"
#include "common/table/npy_rows.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const RowSource> Rows(const std::string& name, int64_t rows,
                                      int64_t width = 1) {
  return std::make_shared<ComputedRows<int64_t>>(
      name, width, rows, [width](int64_t row, int64_t* out) {
        for (int64_t i = 0; i < width; ++i) out[i] = row;
      });
}

// Types a and b, and the relation a__x__b of three edges.
RawGraph SmallRawGraph() {
  RawGraph graph;
  graph.nodes.push_back({.name = "a", .count = 3});
  graph.nodes.push_back({.name = "b", .count = 4});
  graph.edges.push_back({.src = 0, .name = "x", .dst = 1});
  graph.edges[0].endpoints = Rows("ends", 3, 2);
  return graph;
}

TEST(GraphChecksTest, SaysWhichIdsAreInRange) {
  EXPECT_EQ(NodeRangeText({.name = "a", .count = 3}),
            "node type a has 3 nodes, ids are 0 to 2");
  EXPECT_EQ(NodeRangeText({.name = "a", .count = 3, .count_reason = "I say"}),
            "node type a has 3 nodes, because I say; ids are 0 to 2");
  EXPECT_EQ(NodeRangeText({.name = "a", .count = 0}),
            "node type a has no nodes");
  EXPECT_EQ(NodeRangeText({.name = "a", .count = 0, .count_reason = "I say"}),
            "node type a has no nodes, because I say");
}

TEST(GraphChecksTest, NamesMustBeValidAndDifferent) {
  EXPECT_TRUE(CheckGraphNames(SmallRawGraph(), {}).ok());
  using Change = void (*)(RawGraph&);
  const std::vector<std::pair<Change, const char*>> cases = {
      {[](RawGraph& g) { g.nodes[1].name = "a"; },
       "node type a is given twice"},
      {[](RawGraph& g) { g.nodes[1].name = "a__b"; },
       "node type \"a__b\": \"__\" separates the parts of relation names"},
      {[](RawGraph& g) { g.nodes[1].name = "a=b"; },
       "'a=b' cannot name a node type or relation: it has '=' or ','"},
      {[](RawGraph& g) { g.nodes[1].name = ""; }, "cannot name"},
      {[](RawGraph& g) { g.edges[0].name = "x,y"; },
       "'x,y' cannot name a node type or relation: it has '=' or ','"},
      {[](RawGraph& g) { g.edges.push_back(g.edges[0]); },
       "relation a__x__b is given twice"},
      {[](RawGraph& g) {
         g.splits = {{.type = 1, .name = "train"},
                     {.type = 1, .name = "train"}};
       },
       "split train of b is given twice"},
      {[](RawGraph& g) {
         g.edge_splits = {{.edges = 0, .name = "test"},
                          {.edges = 0, .name = "test"}};
       },
       "split test of a__x__b is given twice"},
      {[](RawGraph& g) { g.splits = {{.type = 0, .name = "a/b"}}; },
       "cannot name"},
      {[](RawGraph& g) { g.edge_splits = {{.edges = 0, .name = "a/b"}}; },
       "cannot name"}};
  for (const auto& [change, what] : cases) {
    RawGraph graph = SmallRawGraph();
    change(graph);
    const absl::Status status = CheckGraphNames(graph, {});
    ASSERT_FALSE(status.ok()) << what;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
  }
  // Splits of other types may have the same name.
  RawGraph graph = SmallRawGraph();
  graph.splits = {{.type = 0, .name = "train"}, {.type = 1, .name = "train"}};
  graph.edge_splits = {{.edges = 0, .name = "train"}};
  EXPECT_TRUE(CheckGraphNames(graph, {}).ok());
  // The reverse must not have the name of another relation.
  graph.edges.push_back(graph.edges[0]);
  graph.edges[1] = {.src = 1, .name = "rev_x", .dst = 0};
  EXPECT_TRUE(CheckGraphNames(graph, {}).ok());
  ImportOptions options;
  options.add_reverse = true;
  EXPECT_EQ(CheckGraphNames(graph, options).message(),
            "relation b__rev_x__a is given twice");
}

TEST(GraphChecksTest, EveryColumnHasARowPerNodeOrEdge) {
  EXPECT_TRUE(CheckRowCounts(SmallRawGraph()).ok());
  using Column = std::shared_ptr<const RowSource>;
  for (const auto column : {&RawNodes::feature, &RawNodes::label,
                            &RawNodes::time, &RawNodes::owner}) {
    for (const int64_t rows : {-1, 3, 4, 5}) {
      RawGraph graph = SmallRawGraph();
      graph.nodes[1].*column = Column(Rows("column", rows));
      const absl::Status status = CheckRowCounts(graph);
      EXPECT_EQ(status.ok(), rows == 4 || rows == -1) << rows;
      if (status.ok()) continue;
      EXPECT_EQ(status.message(), StrCat("column: ", rows,
                                         " rows for 4 nodes; each node needs "
                                         "a row"));
      graph.nodes[1].count_reason = "I say";
      EXPECT_THAT(std::string(CheckRowCounts(graph).message()),
                  HasSubstr(" for 4 nodes (I say); each node needs a row"));
    }
  }
  for (const auto column : {&RawEdges::weight, &RawEdges::time, &RawEdges::type,
                            &RawEdges::feature}) {
    for (const int64_t rows : {-1, 2, 3, 4}) {
      RawGraph graph = SmallRawGraph();
      graph.edges[0].*column = Column(Rows("column", rows));
      const absl::Status status = CheckRowCounts(graph);
      EXPECT_EQ(status.ok(), rows == 3 || rows == -1) << rows;
      if (status.ok()) continue;
      EXPECT_EQ(status.message(),
                StrCat("column: ", rows,
                       " rows, but ends has 3 edges; each edge needs a row"));
      graph.edges[0].endpoints = Rows("text", -1, 2);
      EXPECT_TRUE(CheckRowCounts(graph).ok());
    }
  }
}

// Per node, 8 bytes for each direction of a relation, and more for columns.
TEST(GraphChecksTest, CountsTheMemoryOfNodes) {
  constexpr int64_t kMany = int64_t{1} << 50;
  RawGraph graph;
  graph.nodes.push_back({.name = "a", .count = kMany});
  graph.edges.push_back({.src = 0, .name = "x", .dst = 0});
  graph.edges[0].endpoints = Rows("ends", 3, 2);
  const auto expect = [](const RawGraph& raw, const ImportOptions& options,
                         const std::string& what) {
    const absl::Status status = CheckImportMemory(raw, options);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(what));
    EXPECT_EQ(ReasonOf(status), "import_too_large");
  };
  const std::string start = "importing 1125899906842624 nodes needs ";
  expect(graph, {}, start + "16.0 PiB");
  ImportOptions coalesce;
  coalesce.coalesce = true;
  expect(graph, coalesce, start + "24.0 PiB");
  graph.nodes[0].time = Rows("times", kMany);
  expect(graph, {}, start + "24.0 PiB");
  graph.nodes[0].label = Rows("labels", kMany);
  expect(graph, {}, start + "40.0 PiB");
  // Relations are imported one after the other.
  graph.edges.push_back(graph.edges[0]);
  expect(graph, {}, start + "40.0 PiB");
  graph.nodes.push_back({.name = "b", .count = kMany});
  expect(graph, {}, "importing 2251799813685248 nodes needs 40.0 PiB");
  // How many lines a text file has is not known yet.
  graph.nodes[0].label = Rows("labels", -1);
  EXPECT_TRUE(CheckImportMemory(graph, {}).ok());
  EXPECT_TRUE(CheckImportMemory(SmallRawGraph(), {}).ok());
}

TEST(GraphChecksTest, RefusesTypesWithFarMoreNodesThanEdges) {
  struct Case {
    int64_t nodes, edges;
    bool ok;
  };
  constexpr int64_t kFew = 1 << 20;
  for (const Case& c :
       {Case{kFew, 0, true}, Case{kFew + 1, 0, false},
        Case{kFew + 1, 1047, false}, Case{kFew + 1, 1048, true},
        Case{3'000'999, 2999, false}, Case{3'000'999, 3000, true}}) {
    RawGraph graph = SmallRawGraph();
    graph.nodes[1].count = c.nodes;
    graph.edges[0].endpoints = Rows("ends", c.edges, 2);
    const absl::Status status = CheckNodeCounts(graph);
    EXPECT_EQ(status.ok(), c.ok) << c.nodes << " " << c.edges;
    if (status.ok()) continue;
    EXPECT_EQ(status.message(),
              StrCat("node type b would have ", c.nodes, " nodes (ids 0 to ",
                     c.nodes - 1, "), but only ", c.edges,
                     " edges touch one, fewer than one per 1000 nodes"));
    EXPECT_EQ(ReasonOf(status), "ids_with_gaps");
    // Edges of both directions count; so does a column, or a chosen count.
    RawGraph more = graph;
    more.edges.push_back({.src = 1, .name = "y", .dst = 0});
    more.edges[1].endpoints = Rows("ends", 4000, 2);
    EXPECT_TRUE(CheckNodeCounts(more).ok());
    more.edges[1].src = 0;  // touches no node of b
    EXPECT_FALSE(CheckNodeCounts(more).ok());
    for (const auto column : {&RawNodes::feature, &RawNodes::label,
                              &RawNodes::time, &RawNodes::owner}) {
      RawGraph with_column = graph;
      with_column.nodes[1].*column = Rows("column", c.nodes);
      EXPECT_TRUE(CheckNodeCounts(with_column).ok());
    }
    graph.nodes[1].count_is_chosen = true;
    EXPECT_TRUE(CheckNodeCounts(graph).ok());
  }
}

TEST(GraphChecksTest, FractionsAreThreeSharesOfAtMostAll) {
  for (const std::vector<double>& good : {std::vector<double>{0, 0, 0},
                                          {1, 0, 0},
                                          {0, 0, 1},
                                          {0.8, 0.1, 0.1},
                                          {0.1, 0.2, 0.3}}) {
    EXPECT_TRUE(CheckFractions("f", good).ok());
  }
  const std::vector<std::pair<std::vector<double>, const char*>> wrong = {
      {{}, "f"},
      {{0.5, 0.5}, "f 0.5,0.5"},
      {{0.5, 0.25, 0.25, 0}, "f 0.5,0.25,0.25,0"},
      {{-0.1, 0.5, 0.5}, "f -0.1,0.5,0.5"},
      {{1.5, 0, -0.5}, "f 1.5,0,-0.5"},
      {{0.5, 0.25, 0.375}, "f 0.5,0.25,0.375"},
      {{NAN, 0, 0}, "f nan,0,0"}};
  for (const auto& [fractions, what] : wrong) {
    EXPECT_EQ(CheckFractions("f", fractions).message(),
              StrCat(what,
                     ": give three shares (train, valid, test) from 0 to 1 "
                     "whose sum is at most 1"));
  }
}

TEST(GraphChecksTest, CutsLabelledNodesAtRoundedShares) {
  const auto sizes = [](int64_t count, const std::vector<double>& fractions) {
    std::vector<int64_t> labelled;
    for (int64_t i = 0; i < count; ++i) labelled.push_back(3 * i);
    std::vector<size_t> result;
    std::vector<int64_t> all;
    for (const auto& split : SplitByFractions(labelled, fractions, 1, 0)) {
      EXPECT_TRUE(std::is_sorted(split.begin(), split.end()));
      result.push_back(split.size());
      all.insert(all.end(), split.begin(), split.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_TRUE(std::unique(all.begin(), all.end()) == all.end());
    for (const int64_t id : all) EXPECT_EQ(id % 3, 0);
    return result;
  };
  EXPECT_THAT(sizes(10, {0.25, 0.25, 0.5}), ElementsAre(3, 2, 5));
  EXPECT_THAT(sizes(10, {0.8, 0.1, 0.1}), ElementsAre(8, 1, 1));
  EXPECT_THAT(sizes(7, {0.1, 0.1, 0.1}), ElementsAre(1, 0, 1));
  EXPECT_THAT(sizes(1, {0, 0, 1}), ElementsAre(0, 0, 1));
  EXPECT_THAT(sizes(0, {0.8, 0.1, 0.1}), ElementsAre(0, 0, 0));
}

TEST(GraphChecksTest, FoldsNeedThreeAndANodeEach) {
  EXPECT_TRUE(CheckFolds(3, 3, "a").ok());
  EXPECT_EQ(CheckFolds(2, 9, "a").message(),
            "folds 2: at least 3 are needed, one each to train, validate and "
            "test");
  EXPECT_EQ(CheckFolds(5, 4, "a").message(),
            "folds 5: node type a has only 4 labelled nodes; each fold needs "
            "one");
  EXPECT_FALSE(CheckFolds(-1, 9, "a").ok());
}

TEST(GraphChecksTest, SplitsHaveNamesOfFolders) {
  for (const char* good : {"a", "Z9-_.x", "_", "9", "a..b"}) {
    EXPECT_TRUE(CheckSplitName(good).ok()) << good;
  }
  for (const char* wrong :
       {"", ".", "..", ".a", "a/b", "a b", "a,b", "\xc3\xa4"}) {
    EXPECT_EQ(CheckSplitName(wrong).message(),
              StrCat("name \"", wrong,
                     "\": a split's name has letters, digits, '-', '_' and "
                     "'.', and does not start with '.'"));
  }
}

TEST(GraphChecksTest, SplitsHaveEachNodeOnce) {
  const RawNodes nodes{.name = "a", .count = 5};
  const auto read = [&](std::vector<int64_t> ids) {
    return ReadSplitIds(*ArrayRows("ids", Array::Adopt(std::move(ids))), nodes);
  };
  EXPECT_THAT(*read({4, 0, 2}), ElementsAre(0, 2, 4));
  EXPECT_THAT(*read({}), ElementsAre());
  EXPECT_EQ(read({1, 5}).status().message(),
            "ids: row 1: node 5 is out of range: node type a has 5 nodes, ids "
            "are 0 to 4");
  EXPECT_THAT(std::string(read({1, 0, -1}).status().message()),
              HasSubstr("ids: row 2: node -1 is out of range"));
  EXPECT_EQ(read({3, 1, 4, 1}).status().message(),
            "ids: row 3: node 1 occurs twice in this split");
  EXPECT_EQ(ReadSplitIds(*Rows("pairs", 2, 2), nodes).status().message(),
            "pairs: 2 numbers per row, but a split has one id per row");
}

}  // namespace
}  // namespace millrace
