// SPDX-License-Identifier: Apache-2.0
// Partition folders of PyG and GLT, as imitated by make_partitions.py, compared
// with the formulas from which it makes their graphs.
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/ingest/formats/glt.h"
#include "common/ingest/formats/owner_output.h"
#include "common/ingest/formats/pyg.h"
#include "common/ingest/importer.h"
#include "common/partition/partition.h"
#include "common/torchfile/torch_file.h"
#include "tests/support/python.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int64_t kPartedNodes = 40, kPartedEdges = 120;
constexpr int kNoTorch = 77;

int64_t Src(int64_t edge, int64_t count) { return edge * 7 % count; }
int64_t Dst(int64_t edge, int64_t count) {
  return (edge * edge + 3 * edge) % count;
}

using Describe = absl::StatusOr<RawGraph> (*)(const PartitionFolderInput&,
                                              const ImportOptions&);

class PartitionFormatsTest : public testing::DirectoryTest {
 protected:
  static void SetUpTestSuite() {
    inputs_ = new fs::path(fs::temp_directory_path() /
                           ("millrace-partitions-" + std::to_string(getpid())));
    fs::create_directories(*inputs_);
    status_ = testing::RunPython(MILLRACE_TORCH_PYTHON,
                                 "ingest/formats/make_partitions.py",
                                 {inputs_->string()});
  }
  static void TearDownTestSuite() {
    fs::remove_all(*inputs_);
    delete inputs_;
  }

  void SetUp() override {
    DirectoryTest::SetUp();
    if (status_ == kNoTorch) {
      GTEST_SKIP()
          << "no Python installation has PyTorch; Debian's is python3-torch";
    }
    ASSERT_EQ(status_, 0);
  }

  PartitionFolderInput Input(const std::string& folder,
                             uint64_t memory = 1 << 20) {
    PartitionFolderInput input;
    input.directory = *inputs_ / folder;
    input.restore.scratch = directory_;
    input.restore.memory_bytes = memory;
    return input;
  }

  absl::StatusOr<std::unique_ptr<Store>> Import(
      Describe describe, const PartitionFolderInput& input) {
    fs::remove_all(directory_ / "out");
    const auto graph = describe(input, {});
    if (!graph.ok()) return graph.status();
    const auto manifest = ImportGraph(*graph, {}, directory_ / "out");
    if (!manifest.ok()) return manifest.status();
    return Store::Open(directory_ / "out");
  }

  // A copy of an input folder that a test may change.
  PartitionFolderInput Copy(const std::string& folder) {
    const fs::path copy = directory_ / "copy" / fs::path(folder).filename();
    fs::create_directories(copy.parent_path());
    fs::copy(*inputs_ / folder, copy, fs::copy_options::recursive);
    PartitionFolderInput input = Input("");
    input.directory = copy;
    return input;
  }

  // A copy of the folder DATASET-partitions and of those beside it.
  PartitionFolderInput CopyWithLabels(const std::string& dataset) {
    fs::remove_all(directory_ / "copy");
    for (const char* beside : {"-label", "-train-partitions", "-val-partitions",
                               "-test-partitions"}) {
      Copy(dataset + beside);
    }
    return Copy(dataset + "-partitions");
  }

  void ExpectRefusal(Describe describe, const PartitionFolderInput& input,
                     const std::string& what) {
    SCOPED_TRACE(what);
    const auto store = Import(describe, input);
    ASSERT_FALSE(store.ok());
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(what));
    fs::remove_all(directory_ / "copy");
  }

  static inline fs::path* inputs_ = nullptr;
  static inline int status_ = 0;
};

// Positions in the in-lists, by edge id.
std::vector<int64_t> PlacesOfEdges(const NeighborLists& in) {
  std::vector<int64_t> places(static_cast<size_t>(in.edge_id.rows()), -1);
  for (int64_t i = 0; i < in.edge_id.rows(); ++i) {
    places[in.edge_id.As<int64_t>()[i]] = i;
  }
  return places;
}

void ExpectEdges(const Store& store, RelationIndex relation, int64_t count) {
  const Relation& info = store.schema().relations[relation];
  const NeighborLists& in = store.partition(0)->edges[relation].in;
  ASSERT_EQ(in.edge_id.rows(), count);
  const std::vector<int64_t> places = PlacesOfEdges(in);
  const auto indptr = in.indptr.As<int64_t>();
  const int64_t sources = store.schema().node_types[info.src].count;
  const int64_t destinations = store.schema().node_types[info.dst].count;
  for (int64_t edge = 0; edge < count; ++edge) {
    const int64_t place = places[edge];
    ASSERT_GE(place, 0);
    EXPECT_EQ(in.indices.IntegerAt(place), Src(edge, sources));
    const int64_t dst = Dst(edge, destinations);
    EXPECT_GE(place, indptr[dst]);
    EXPECT_LT(place, indptr[dst + 1]);
  }
}

// Column k of node v is v / (k + 1); columns from `width` on are 0.
void ExpectFeatures(const Store& store, TypeIndex type, int64_t width) {
  const Array& feature = store.partition(0)->nodes[type].feature;
  ASSERT_EQ(feature.shape().size(), 2);
  const int64_t columns = feature.shape()[1];
  for (int64_t v = 0; v < feature.rows(); ++v) {
    for (int64_t k = 0; k < columns; ++k) {
      const float expected =
          k < width ? static_cast<float>(v) / static_cast<float>(k + 1) : 0;
      EXPECT_EQ(feature.As<float>()[v * columns + k], expected);
    }
  }
}

void ExpectEdgeFeatures(const Store& store, RelationIndex relation) {
  const EdgeColumns& edges = store.partition(0)->edges[relation];
  const std::vector<int64_t> places = PlacesOfEdges(edges.in);
  ASSERT_EQ(edges.feature.rows(), edges.in.edge_id.rows());
  for (size_t edge = 0; edge < places.size(); ++edge) {
    const auto value = static_cast<float>(edge);
    EXPECT_EQ(edges.feature.As<float>()[2 * places[edge]], value);
    EXPECT_EQ(edges.feature.As<float>()[2 * places[edge] + 1], -value);
  }
}

void ExpectCompanions(const Store& store, TypeIndex type) {
  const int64_t count = store.schema().node_types[type].count;
  const auto label = store.partition(0)->nodes[type].label.As<int64_t>();
  for (int64_t v = 0; v < count; ++v) EXPECT_EQ(label[v], v % 5);
  int64_t rest = 0;
  for (const char* name : {"train", "valid", "test"}) {
    const auto split = store.FindSplit(type, name);
    ASSERT_TRUE(split.ok()) << split.status();
    std::vector<int64_t> expected;
    for (int64_t v = rest; v < count; v += 4) expected.push_back(v);
    EXPECT_THAT((*split)->original_id.As<int64_t>(),
                ::testing::ElementsAreArray(expected));
    ++rest;
  }
}

// Expects the types a, b, c and the relations a__likes__b, b__by__a.
void ExpectHeterogeneous(const Store& store, bool padded) {
  const Schema& schema = store.schema();
  ASSERT_EQ(schema.node_types.size(), 3);
  EXPECT_EQ(schema.node_types[2].name, "c");
  EXPECT_EQ(schema.node_types[2].count, 10);
  EXPECT_FALSE(schema.node_types[2].feature.present());
  EXPECT_EQ(schema.node_types[1].feature.row_shape[0], padded ? 3 : 2);
  ExpectFeatures(store, 0, 3);
  ExpectFeatures(store, 1, 2);
  ASSERT_EQ(schema.relations.size(), 2);
  EXPECT_EQ(schema.RelationName(0), "a__likes__b");
  EXPECT_EQ(schema.RelationName(1), "b__by__a");
  ExpectEdges(store, 0, 100);
  ExpectEdges(store, 1, 60);
  EXPECT_FALSE(schema.relations[0].feature.present());
  ExpectEdgeFeatures(store, 1);
  ExpectCompanions(store, 1);
}

TEST_F(PartitionFormatsTest, RestoresHomogeneousPygGraphs) {
  for (const uint64_t memory : {0, 300, 1 << 20}) {  // many windows, few, one
    SCOPED_TRACE(memory);
    const auto store =
        Import(&OpenPygPartitions, Input("pyg/rich-partitions", memory));
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->schema().node_types[0].count, kPartedNodes);
    ExpectEdges(**store, 0, kPartedEdges);
    ExpectFeatures(**store, 0, 2);
    ExpectEdgeFeatures(**store, 0);
    ExpectCompanions(**store, 0);
    const Partition& part = *(*store)->partition(0);
    EXPECT_EQ(part.nodes[0].time.As<int64_t>()[13], 39);
    const std::vector<int64_t> places = PlacesOfEdges(part.edges[0].in);
    for (int64_t edge = 0; edge < kPartedEdges; ++edge) {
      EXPECT_EQ(part.edges[0].in.time.As<int64_t>()[places[edge]],
                edge * 13 % 17 + 3 * kPartedNodes);
    }
  }
}

TEST_F(PartitionFormatsTest, ReadsEmptyEdgeFeatures) {
  const auto store = Import(&OpenPygPartitions, Input("pyg/plain-partitions"));
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectEdges(**store, 0, kPartedEdges);
  ExpectFeatures(**store, 0, 2);
  EXPECT_FALSE((*store)->schema().relations[0].feature.present());
  EXPECT_EQ((*store)->schema().relations[0].time, ListTime::kNone);
}

TEST_F(PartitionFormatsTest, SkipsEdgeSplits) {
  const auto store = Import(&OpenPygPartitions, Input("pyg/links-partitions"));
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectEdges(**store, 0, kPartedEdges);
  EXPECT_TRUE((*store)->manifest().splits.empty());
  EXPECT_FALSE((*store)->schema().node_types[0].label.present());
}

TEST_F(PartitionFormatsTest, RestoresHeterogeneousPygGraphs) {
  const auto store =
      Import(&OpenPygPartitions, Input("pyg/hetero-partitions", 200));
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectHeterogeneous(**store, true);
}

// PyG fills in -1 for integers. Edges that have only times have no ids of
// their own, but those of the graph.
TEST_F(PartitionFormatsTest, RestoresIntegersAndTimesOfPygGraphs) {
  const auto store =
      Import(&OpenPygPartitions, Input("pyg/integers-partitions"));
  ASSERT_TRUE(store.ok()) << store.status();
  const Partition& part = *(*store)->partition(0);
  const auto feature = part.nodes[1].feature.As<float>();
  ASSERT_EQ(feature.size(), 40u);
  for (int64_t v = 0; v < 20; ++v) {
    EXPECT_EQ(feature[2 * v], static_cast<float>(v % 7));
    EXPECT_EQ(feature[2 * v + 1], static_cast<float>(-v));
    EXPECT_EQ(part.nodes[1].time.As<int64_t>()[v], 2 * v);
  }
  EXPECT_TRUE(part.nodes[0].feature.present());
  EXPECT_FALSE(part.nodes[2].feature.present());
  EXPECT_FALSE(part.nodes[0].time.present());
  ExpectEdges(**store, 0, 100);
  ExpectEdges(**store, 1, 60);
  EXPECT_EQ((*store)->schema().relations[0].time, ListTime::kNeighbor);
  EXPECT_EQ((*store)->schema().relations[1].time, ListTime::kEdge);
  const NeighborLists& in = part.edges[1].in;
  const std::vector<int64_t> places = PlacesOfEdges(in);
  for (int64_t edge = 0; edge < 60; ++edge) {
    EXPECT_EQ(in.time.As<int64_t>()[places[edge]], 3 * edge + 1000);
  }
}

TEST_F(PartitionFormatsTest, FilesOfColumnsAreOptionalInPygFolders) {
  PartitionFolderInput input = Copy("pyg/rich-partitions");
  for (const char* part : {"part_0", "part_1", "part_2"}) {
    fs::remove(input.directory / part / "node_feats.pt");
    fs::remove(input.directory / part / "edge_feats.pt");
  }
  const auto store = Import(&OpenPygPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectEdges(**store, 0, kPartedEdges);
  EXPECT_FALSE((*store)->schema().node_types[0].feature.present());
  EXPECT_FALSE((*store)->schema().node_types[0].has_time);
  EXPECT_FALSE((*store)->schema().relations[0].feature.present());
  EXPECT_EQ((*store)->schema().relations[0].time, ListTime::kNone);
  fs::remove_all(directory_ / "copy");
  input = Copy("pyg/hetero-partitions");
  for (const char* part : {"part_0", "part_1", "part_2"}) {
    fs::remove(input.directory / part / "node_feats.pt");
    fs::remove(input.directory / part / "edge_feats.pt");
  }
  const auto typed = Import(&OpenPygPartitions, input);
  ASSERT_TRUE(typed.ok()) << typed.status();
  ExpectEdges(**typed, 1, 60);
  EXPECT_FALSE((*typed)->schema().node_types[0].feature.present());
  EXPECT_FALSE((*typed)->schema().relations[1].feature.present());
  fs::remove_all(directory_ / "copy");
  // But either all parts have one, or none.
  for (const auto& [file, what] :
       {std::pair("node_feats.pt", " rows for 40 nodes; each needs one\nare "),
        std::pair("edge_feats.pt", " rows for 120 edges; each needs one\n")}) {
    input = Copy("pyg/rich-partitions");
    fs::remove(input.directory / "part_1" / file);
    ExpectRefusal(&OpenPygPartitions, input, what);
  }
  input = Copy("pyg/rich-partitions");
  fs::copy_file(input.directory / "part_0/edge_feats.pt",
                input.directory / "part_2/edge_feats.pt",
                fs::copy_options::overwrite_existing);
  ExpectRefusal(&OpenPygPartitions, input,
                "node__to__node: edge 0 occurs twice");
}

TEST_F(PartitionFormatsTest, ChecksTheDescriptionOfPygFolders) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"{", "META.json: this is not a JSON object"},
      {"[3]", "META.json: this is not a JSON object"},
      {"{}", "META.json: num_parts is null, not 1 to 65535"},
      {R"({"num_parts": -1})", "num_parts is -1, not 1 to 65535"},
      {R"({"num_parts": 2.5})", "num_parts is 2.5, not 1 to 65535"},
      {R"({"num_parts": "3"})", R"(num_parts is "3", not 1 to 65535)"},
      {R"({"num_parts": 65536})", "num_parts is 65536, not 1 to 65535"},
      {R"({"num_parts": 65535})", "part_3/graph.pt"},
      {R"({"num_parts": 3, "is_hetero": true, "node_types": ["a", 1]})",
       "META.json: node_types are not strings"},
      {R"({"num_parts": 3, "is_hetero": true, "edge_types": [["a", "b"]]})",
       "META.json: edge_types are not lists of three strings"},
      {R"({"num_parts": 3, "is_hetero": true, "edge_types": ["abc"]})",
       "META.json: edge_types are not lists of three strings"},
      {R"({"num_parts": 3, "is_hetero": true, "edge_types": [["a", 1, "b"]]})",
       "META.json: edge_types are not lists of three strings"},
      {R"({"num_parts": 3, "is_hetero": true, "node_types": ["a", "c"],
           "edge_types": [["a", "likes", "b"]]})",
       "META.json: edge type a__likes__b has node type b, which is not in "
       "node_types"},
      {R"({"num_parts": 3, "is_hetero": true, "node_types": ["c", "b"],
           "edge_types": [["a", "likes", "b"]]})",
       "META.json: edge type a__likes__b has node type a, which is not"},
      {R"({"num_parts": 3, "is_hetero": true, "node_types": ["a", "d"]})",
       "node_map/d.pt"},
      {R"({"num_parts": 3, "is_hetero": true, "node_types": ["a", "b"],
           "edge_types": [["a", "of", "b"]]})",
       "edge_map/a__of__b.pt"}};
  for (const auto& [json, what] : cases) {
    const PartitionFolderInput input = Copy("pyg/hetero-partitions");
    std::ofstream(input.directory / "META.json") << json;
    ExpectRefusal(&OpenPygPartitions, input, what);
  }
  const PartitionFolderInput input = Copy("pyg/hetero-partitions");
  std::ofstream(input.directory / "META.json")
      << R"({"num_parts": 3, "is_hetero": true, "node_types": ["a", "b"],
             "edge_types": [["a", "of", "b"]]})";
  fs::copy(input.directory / "edge_map/a__likes__b.pt",
           input.directory / "edge_map/a__of__b.pt");
  ExpectRefusal(&OpenPygPartitions, input,
                "hetero-partitions: no graph.pt holds edge type a__of__b");
}

// Parts of pickles.
std::string Text(const std::string& text) {
  return "\x8c" + std::string(1, static_cast<char>(text.size())) + text;
}
std::string Number(uint32_t number) {
  std::string bytes = "J";
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<char>(number >> (8 * i)));
  }
  return bytes;
}
std::string ListOf(const std::string& items) { return "](" + items + "e"; }
std::string Dictionary(const std::string& items) { return "}(" + items + "u."; }

TEST_F(PartitionFormatsTest, ChecksTheDescriptionOfGltFolders) {
  const std::string parts = Text("num_parts") + Number(3);
  const std::string hetero = parts + Text("data_cls") + Text("hetero");
  const std::string types = Text("node_types") + ListOf(Text("a") + Text("c"));
  const auto relation = [](const std::string& items) {
    return Text("edge_types") + ListOf("(" + items + "t");
  };
  const std::string most =
      Text("num_parts") + Number(65535) + Text("data_cls") + Text("hetero");
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "META: num_parts is not 1 to 65535"},
      {Text("num_parts") + Text("3"), "META: num_parts is not 1 to 65535"},
      {Text("num_parts") + Number(0), "META: num_parts is not 1 to 65535"},
      {Text("num_parts") + Number(65536), "META: num_parts is not 1 to 65535"},
      {most + types, "META: there are no node_types or no edge_types"},
      {hetero + relation(""), "META: there are no node_types or no edge_types"},
      {hetero + Text("node_types") + ListOf(Number(1)) + relation(""),
       "META: a type's name is an integer"},
      {hetero + types + relation(Text("a") + Text("b")),
       "META: an edge type has 2 strings; it needs source, name and"},
      {hetero + types + relation(Text("a") + Number(2) + Text("b")),
       "META: a type's name is an integer"},
      {hetero + types + relation(Text("a") + Text("likes") + Text("b")),
       "META: edge type a__likes__b has node type b, which is not in "
       "node_types"},
      {hetero + types + relation(Text("b") + Text("by") + Text("a")),
       "META: edge type b__by__a has node type b, which is not in node_types"},
      {hetero + types + relation(Text("a") + Text("to") + Text("a")),
       "part0/graph/a__to__a: no rows.pt there, nor in the folders of other "
       "parts"}};
  for (const auto& [items, what] : cases) {
    const PartitionFolderInput input = Copy("glt/hetero-partitions");
    std::ofstream(input.directory / "META", std::ios::binary)
        << Dictionary(items);
    ExpectRefusal(&OpenGltPartitions, input, what);
  }
}

TEST_F(PartitionFormatsTest, NamesFilesThatGltFoldersLack) {
  for (const auto& [file, what] :
       {std::pair("part1/node_feat/ids.pkl",
                  "part1/node_feat/ids.pkl: no such file, but "),
        std::pair("part1/graph/cols.pt", "part1/graph/cols.pt: no such file"),
        std::pair("part2/graph/rows.pt", "part2/graph/rows.pt: no such file"),
        std::pair("part0/node_feat/feats.pkl",
                  " rows for 40 nodes; each needs one"),
        std::pair("part0/edge_feat/feats.pkl",
                  " rows for 120 edges; each needs one"),
        std::pair("part0/graph/weights.pt",
                  " rows for 120 edges; each needs one"),
        std::pair("node_pb.pt", "node_pb.pt")}) {
    const PartitionFolderInput input = Copy("glt/plain-partitions");
    fs::remove(input.directory / file);
    ExpectRefusal(&OpenGltPartitions, input, what);
  }
}

// GLT creates the file before it appends to it.
TEST_F(PartitionFormatsTest, EmptyFilesHoldNoFeatures) {
  const PartitionFolderInput input = Copy("glt/plain-partitions");
  for (const char* part : {"part0", "part1", "part2"}) {
    fs::resize_file(input.directory / part / "node_feat/feats.pkl", 0);
  }
  const auto store = Import(&OpenGltPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->schema().node_types[0].feature.present());
  ExpectEdgeFeatures(**store, 0);
}

// The edges of part 0 come first, then those of part 1, and so on.
TEST_F(PartitionFormatsTest, KeepsTheOrderOfCachedEdgesWithoutABook) {
  const PartitionFolderInput input = Copy("glt/cached-partitions");
  fs::remove(input.directory / "edge_pb.pt");
  const auto store = Import(&OpenGltPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  std::vector<int64_t> order;
  for (int part = 0; part < 3; ++part) {
    for (int64_t edge = 0; edge < kPartedEdges; ++edge) {
      const int64_t src = Src(edge, kPartedNodes);
      if ((src + src / 3) % 3 == part) order.push_back(edge);
    }
  }
  const NeighborLists& in = (*store)->partition(0)->edges[0].in;
  ASSERT_EQ(in.edge_id.rows(), kPartedEdges);
  const std::vector<int64_t> places = PlacesOfEdges(in);
  for (int64_t i = 0; i < kPartedEdges; ++i) {
    EXPECT_EQ(in.indices.IntegerAt(places[i]), Src(order[i], kPartedNodes));
    EXPECT_EQ(in.weight.As<float>()[places[i]],
              static_cast<float>(order[i] % 4) / 2);
  }
}

TEST_F(PartitionFormatsTest, ChoosesTheTypeOfLabelsAndSplits) {
  PartitionFolderInput input = CopyWithLabels("pyg/hetero");
  input.type = "b";
  const auto store = Import(&OpenPygPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectCompanions(**store, 1);
  input.type = "a";
  ExpectRefusal(&OpenPygPartitions, input,
                "hetero-label/label.pt: 20 rows for 30 nodes");
  input = CopyWithLabels("pyg/hetero");
  fs::copy_file(*inputs_ / "pyg/plain-label/label.pt",
                directory_ / "copy/hetero-label/label.pt",
                fs::copy_options::overwrite_existing);
  ExpectRefusal(&OpenPygPartitions, input,
                "type: the node type of the labels and splits is needed; none "
                "of a, b, c has 40 nodes, the number of labels");
  input = CopyWithLabels("pyg/hetero");
  fs::copy_file(input.directory / "node_map/b.pt",
                input.directory / "node_map/c.pt",
                fs::copy_options::overwrite_existing);
  ExpectRefusal(&OpenPygPartitions, input,
                "these have as many nodes as there are labels: b, c");
  input = CopyWithLabels("pyg/plain");
  fs::copy_file(*inputs_ / "pyg/hetero-label/label.pt",
                directory_ / "copy/plain-label/label.pt",
                fs::copy_options::overwrite_existing);
  ExpectRefusal(&OpenPygPartitions, input,
                "plain-label/label.pt: 20 rows for 40 nodes");
}

TEST_F(PartitionFormatsTest, LabelsAndSplitsAreOptional) {
  PartitionFolderInput input = CopyWithLabels("pyg/plain");
  input.directory /= "";  // DS-partitions/
  auto store = Import(&OpenPygPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectCompanions(**store, 0);
  fs::remove_all(directory_ / "copy/plain-val-partitions");
  fs::remove_all(directory_ / "copy/plain-label");
  store = Import(&OpenPygPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->schema().node_types[0].label.present());
  ASSERT_EQ((*store)->manifest().splits.size(), 2u);
  EXPECT_EQ((*store)->manifest().splits[1].name, "test");
  input = CopyWithLabels("pyg/plain");
  fs::remove_all(directory_ / "copy/plain-train-partitions");
  fs::remove_all(directory_ / "copy/plain-val-partitions");
  fs::remove_all(directory_ / "copy/plain-test-partitions");
  store = Import(&OpenPygPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->schema().node_types[0].label.present());
  EXPECT_TRUE((*store)->manifest().splits.empty());
  // Other names do not say where the labels are.
  input = CopyWithLabels("pyg/plain");
  fs::rename(input.directory, directory_ / "copy/plain");
  input.directory = directory_ / "copy/plain";
  store = Import(&OpenPygPartitions, input);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_FALSE((*store)->schema().node_types[0].label.present());
}

TEST_F(PartitionFormatsTest, RefusesOtherValuesThanIdsAndPartitions) {
  PartitionFolderInput input = CopyWithLabels("pyg/plain");
  fs::copy_file(*inputs_ / "bad/list.pt",
                directory_ / "copy/plain-val-partitions/partition1.pt",
                fs::copy_options::overwrite_existing);
  ExpectRefusal(&OpenPygPartitions, input,
                "plain-val-partitions/partition1.pt: a tensor of node ids is "
                "needed, but this is a list");
  for (const char* other : {"bad/parameter.pt", "bad/transposed.pt"}) {
    input = Copy("pyg/plain-partitions");
    fs::copy_file(*inputs_ / other, input.directory / "node_map.pt",
                  fs::copy_options::overwrite_existing);
    ExpectRefusal(&OpenPygPartitions, input,
                  "node_map.pt: the partition of each node is needed, one "
                  "integer per node");
  }
}

TEST_F(PartitionFormatsTest, RestoresHomogeneousGltGraphs) {
  for (const char* name : {"plain", "cached", "legacy"}) {
    SCOPED_TRACE(name);
    const auto store =
        Import(&OpenGltPartitions,
               Input(std::string("glt/") + name + "-partitions", 300));
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectEdges(**store, 0, kPartedEdges);
    ExpectFeatures(**store, 0, 2);
    ExpectEdgeFeatures(**store, 0);
    ExpectCompanions(**store, 0);
    const NeighborLists& in = (*store)->partition(0)->edges[0].in;
    const std::vector<int64_t> places = PlacesOfEdges(in);
    for (int64_t edge = 0; edge < kPartedEdges; ++edge) {
      EXPECT_EQ(in.weight.As<float>()[places[edge]],
                static_cast<float>(edge % 4) / 2);
    }
  }
}

TEST_F(PartitionFormatsTest, RestoresHeterogeneousGltGraphs) {
  for (const char* name : {"hetero", "cachedhetero"}) {
    SCOPED_TRACE(name);
    const auto store = Import(
        &OpenGltPartitions, Input(std::string("glt/") + name + "-partitions"));
    ASSERT_TRUE(store.ok()) << store.status();
    ExpectHeterogeneous(**store, false);
  }
}

// With --method given, the same partitions can be made again.
TEST_F(PartitionFormatsTest, PreservesTheAssignment) {
  const auto graph = OpenPygPartitions(Input("pyg/hetero-partitions"), {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(ImportGraph(*graph, {}, directory_ / "out").ok());
  const fs::path path = directory_ / "owners";
  ASSERT_TRUE(WriteOwners(*graph, path).ok());
  EXPECT_EQ(WriteOwners(*graph, path).code(), absl::StatusCode::kAlreadyExists);
  PartitionOptions options;
  options.parts = 3;
  options.method = PartitionMethod::kGiven;
  for (const char* type : {"a", "b", "c"}) {
    options.assignment[type] = path / (std::string(type) + ".npy");
  }
  const auto parted =
      PartitionDataset(directory_ / "out", directory_ / "parted", options);
  ASSERT_TRUE(parted.ok()) << parted.status();
  const auto store = Store::Open(directory_ / "parted").value();
  for (int part = 0; part < 3; ++part) {
    const Array ids = ToInt64(store->partition(part)->nodes[0].original_id);
    for (const int64_t v : ids.As<int64_t>()) {
      EXPECT_EQ((v + v / 3) % 3, part);
    }
  }
}

TEST_F(PartitionFormatsTest, WritesOneFileForOneType) {
  const auto graph = OpenGltPartitions(Input("glt/legacy-partitions"), {});
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(WriteOwners(*graph, directory_ / "owners.npy").ok());
  const auto owners = MapNpy(directory_ / "owners.npy");
  ASSERT_TRUE(owners.ok()) << owners.status();
  ASSERT_EQ(owners->rows(), kPartedNodes);
  for (int64_t v = 0; v < kPartedNodes; ++v) {
    EXPECT_EQ(owners->IntegerAt(v), (v + v / 3) % 3);
  }
}

TEST_F(PartitionFormatsTest, RefusesRowsThatWereAppendedTwice) {
  const PartitionFolderInput input = Copy("glt/plain-partitions");
  for (const char* stem : {"ids.pkl", "feats.pkl"}) {
    const fs::path path = input.directory / "part1/node_feat" / stem;
    std::ifstream in(path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
  }
  const auto store = Import(&OpenGltPartitions, input);
  EXPECT_THAT(std::string(store.status().message()),
              HasSubstr("rows for 40 nodes; a program that was run twice"));
}

// The number of rows is right, but one id occurs twice and another one is
// missing.
TEST_F(PartitionFormatsTest, RefusesRepeatedIds) {
  for (const uint64_t memory : {0, 1 << 20}) {
    SCOPED_TRACE(memory);
    PartitionFolderInput input = Copy("pyg/plain-partitions");
    input.restore.memory_bytes = memory;
    // Both parts own 13 nodes.
    fs::copy_file(input.directory / "part_0/node_feats.pt",
                  input.directory / "part_2/node_feats.pt",
                  fs::copy_options::overwrite_existing);
    const auto store = Import(&OpenPygPartitions, input);
    EXPECT_THAT(std::string(store.status().message()),
                ::testing::ContainsRegex("occurs? twice"));
    fs::remove_all(directory_ / "copy");
  }
}

TEST_F(PartitionFormatsTest, NamesWhatIsMissingOrWrong) {
  const auto refusal = [&](const PartitionFolderInput& input,
                           Describe describe) {
    const auto store = Import(describe, input);
    EXPECT_FALSE(store.ok());
    fs::remove_all(directory_ / "copy");
    return std::string(store.status().message());
  };
  PartitionFolderInput input = Copy("pyg/plain-partitions");
  fs::remove_all(input.directory / "part_1");
  EXPECT_THAT(refusal(input, &OpenPygPartitions), HasSubstr("part_1/graph.pt"));
  input = Copy("glt/plain-partitions");
  fs::remove(input.directory / "part2/graph/eids.pt");
  EXPECT_THAT(refusal(input, &OpenGltPartitions),
              HasSubstr("part2/graph/eids.pt: no such file"));
  input = Copy("glt/plain-partitions");
  fs::copy_file(input.directory / "part1/graph/cols.pt",
                input.directory / "part2/graph/cols.pt",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(input, &OpenGltPartitions),
              HasSubstr("so the graph was converted to CSR or CSC"));
  input = Copy("pyg/plain-partitions");
  std::ofstream(input.directory / "META.json") << "{\"num_parts\": 0}";
  EXPECT_THAT(refusal(input, &OpenPygPartitions), HasSubstr("num_parts is 0"));
  input = Copy("glt/plain-partitions");
  std::ofstream(input.directory / "META") << "cos\nsystem\n(S'x'\ntR.";
  EXPECT_THAT(refusal(input, &OpenGltPartitions),
              HasSubstr("META: pickle, byte 0: global os.system"));
  input = Copy("glt/cached-partitions");
  fs::copy_file(input.directory / "node_pb.pt", input.directory / "edge_pb.pt",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(input, &OpenGltPartitions),
              HasSubstr("graph: 120 rows, but"));
  input = Input("glt/hetero-partitions");
  input.type = "d";
  EXPECT_THAT(
      refusal(input, &OpenGltPartitions),
      HasSubstr("type d: no such node type; the node types are a, b, c"));
}

// A fully cached graph stores its edges' partitions in a partition book, from
// which their ids are derived.
TEST_F(PartitionFormatsTest, RefusesBooksOfFewerPartitions) {
  const PartitionFolderInput input = Copy("glt/cached-partitions");
  for (const char* part : {"part0", "part1", "part2"}) {
    fs::remove_all(input.directory / part);  // which hold only features
  }
  const fs::path meta = input.directory / "META";
  std::ifstream in(meta, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const size_t parts = bytes.find("num_parts");
  ASSERT_NE(parts, std::string::npos);
  const size_t number = bytes.find("K\x03", parts);  // BININT1 3
  ASSERT_NE(number, std::string::npos);
  bytes[number + 1] = 2;
  std::ofstream(meta, std::ios::binary) << bytes;
  EXPECT_THAT(std::string(Import(&OpenGltPartitions, input).status().message()),
              HasSubstr("values are not partition numbers, which are 0 to 1"));
}

TEST_F(PartitionFormatsTest, SplitsThatTheImportMakesReplaceTheFolders) {
  for (const Describe describe : {&OpenPygPartitions, &OpenGltPartitions}) {
    const PartitionFolderInput input =
        Input(describe == &OpenPygPartitions ? "pyg/plain-partitions"
                                             : "glt/plain-partitions");
    const auto given = describe(input, {});
    ASSERT_TRUE(given.ok()) << given.status();
    EXPECT_EQ(given->splits.size(), 3u);
    ImportOptions options;
    options.split_fractions = {0.5, 0.25, 0.25};
    const auto made = describe(input, options);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_TRUE(made->splits.empty());
    EXPECT_NE(made->nodes[0].label, nullptr);
  }
}

TEST_F(PartitionFormatsTest, ReadsTorchFilesAndRunsNothing) {
  const fs::path bad = *inputs_ / "bad";
  const auto refusal = [&](const char* name) {
    return std::string(OpenTorchTensor(bad / name).status().message());
  };
  EXPECT_THAT(refusal("evil.pt"), HasSubstr("evil.pt: pickle, byte"));
  EXPECT_THAT(refusal("evil.pt"), HasSubstr("builtin__.print is not"));
  EXPECT_THAT(refusal("module.pt"),
              HasSubstr("torch.nn.modules.linear.Linear"));
  EXPECT_THAT(refusal("script.pt"), HasSubstr(": a TorchScript archive, not"));
  EXPECT_THAT(refusal("complex.pt"),
              HasSubstr("torch.ComplexFloatStorage is not supported"));
  EXPECT_THAT(refusal("expanded.pt"), HasSubstr("does not fit its storage"));
  EXPECT_THAT(refusal("list.pt"), HasSubstr("this is a list"));
  EXPECT_THAT(refusal("none.pt"), HasSubstr("none.pt"));
  const auto list = OpenTorchFile(bad / "list.pt");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->root().items[1]->items[1]->items[1]->integer,
            -(int64_t{1} << 40));
  const auto transposed = OpenTorchTensor(bad / "transposed.pt");
  ASSERT_TRUE(transposed.ok()) << transposed.status();
  EXPECT_THAT(transposed->strides, ElementsAre(1, 3));
  const auto parameter = OpenTorchTensor(bad / "parameter.pt");
  ASSERT_TRUE(parameter.ok()) << parameter.status();
  EXPECT_THAT(parameter->sizes, ElementsAre(3));
  const auto legacy = OpenTorchTensor(bad / "legacy.pt");
  ASSERT_TRUE(legacy.ok()) << legacy.status();
  EXPECT_THAT(legacy->sizes, ElementsAre(3));
  EXPECT_EQ(legacy->data[0], 2);
  EXPECT_EQ(OpenTorchTensor(bad / "bfloat16.pt")->format.type,
            ElementType::kBFloat16);
  EXPECT_EQ(OpenTorchTensor(bad / "short.pt")->format.type,
            ElementType::kInt16);
}

// No cut and no flipped byte of a file does harm.
TEST_F(PartitionFormatsTest, SurvivesDamagedTorchFiles) {
  const fs::path path = directory_ / "damaged.pt";
  for (const char* name : {"list.pt", "legacy.pt"}) {
    std::ifstream in(*inputs_ / "bad" / name, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    for (size_t i = 0; i + 1 < bytes.size(); ++i) {
      std::ofstream(path, std::ios::binary | std::ios::trunc)
          << bytes.substr(0, i + 1);
      EXPECT_FALSE(OpenTorchFile(path).ok()) << name << " cut at " << i + 1;
      std::string flipped = bytes;
      flipped[i] = static_cast<char>(flipped[i] ^ 0x81);
      std::ofstream(path, std::ios::binary | std::ios::trunc) << flipped;
      OpenTorchFile(path).status().IgnoreError();
    }
  }
}

}  // namespace
}  // namespace millrace
