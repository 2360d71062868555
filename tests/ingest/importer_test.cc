// SPDX-License-Identifier: Apache-2.0
// Imports of small random graphs, compared with a plain computation in memory.
#include "common/ingest/importer.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/field_error.h"
#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/ingest/add_split.h"
#include "common/ingest/formats/fake.h"
#include "common/ingest/formats/npy_graph.h"
#include "common/table/npy_rows.h"
#include "tests/support/captured_log.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// One edge as the dataset should contain it.
struct FullEdge {
  int64_t src, dst, id, time;
  float weight;
  int32_t type;
  std::vector<float> feature;
};

struct Case {
  bool undirected = false, add_reverse = false, coalesce = false;
  SelfLoops loops = SelfLoops::kKeep;
  bool edge_times = false, node_times = false;
};

// The user's edges: a random multigraph with self loops.
std::vector<FullEdge> RandomFullEdges(int64_t nodes, int64_t count,
                                      uint32_t seed) {
  std::mt19937 random(seed);
  const auto number = [&](int64_t limit) {
    return static_cast<int64_t>(random() % limit);
  };
  std::vector<FullEdge> edges;
  for (int64_t i = 0; i < count; ++i) {
    // Half of the edges are between few nodes, so that pairs repeat.
    const int64_t limit = i % 2 == 0 ? nodes : 4;
    edges.push_back({number(limit),
                     number(limit),
                     i,
                     number(5),
                     static_cast<float>(number(8)) / 4,
                     static_cast<int32_t>(number(3)),
                     {static_cast<float>(i), static_cast<float>(number(9))}});
  }
  return edges;
}

std::vector<FullEdge> Backward(const std::vector<FullEdge>& edges,
                               int64_t offset) {
  std::vector<FullEdge> reverses;
  for (FullEdge edge : edges) {
    if (edge.src == edge.dst) continue;
    std::swap(edge.src, edge.dst);
    edge.id += offset;
    reverses.push_back(edge);
  }
  return reverses;
}

// The edges that remain after --self-loops and --coalesce; added self loops are
// numbered from `next_id`.
std::vector<FullEdge> Finish(std::vector<FullEdge> edges, int64_t nodes,
                             int64_t next_id, const Case& options) {
  const auto loop = [](const FullEdge& edge) { return edge.src == edge.dst; };
  if (options.loops == SelfLoops::kRemove) std::erase_if(edges, loop);
  if (options.loops == SelfLoops::kAdd) {
    for (int64_t node = 0; node < nodes; ++node) {
      const bool has = std::any_of(
          edges.begin(), edges.end(),
          [&](const FullEdge& edge) { return loop(edge) && edge.src == node; });
      if (!has) edges.push_back({node, node, next_id + node, 0, 1, 0, {0, 0}});
    }
  }
  if (options.coalesce) {
    std::set<std::pair<int64_t, int64_t>> seen;
    std::erase_if(edges, [&](const FullEdge& edge) {
      return !seen.insert({edge.src, edge.dst}).second;
    });
  }
  return edges;
}

template <typename T>
std::string Save(const std::filesystem::path& path, std::vector<T> values,
                 std::vector<int64_t> shape) {
  std::filesystem::remove(path);
  const Array array = Array::Adopt(std::move(values));
  const auto written = WriteNpy(
      path,
      Array::Borrow(array.dtype(), std::move(shape), array.data(), nullptr));
  EXPECT_TRUE(written.ok()) << written.status();
  return path.string();
}

class ImporterTest : public testing::DirectoryTest {
 protected:
  NpyInput Write(const std::vector<FullEdge>& edges,
                 const std::vector<int64_t>& node_times, const Case& options) {
    const auto count = static_cast<int64_t>(edges.size());
    std::vector<int64_t> endpoints, times;
    std::vector<float> weights, features;
    std::vector<int32_t> types;
    for (const FullEdge& edge : edges) endpoints.push_back(edge.src);
    for (const FullEdge& edge : edges) {
      endpoints.push_back(edge.dst);
      times.push_back(edge.time);
      weights.push_back(edge.weight);
      types.push_back(edge.type);
      features.insert(features.end(), edge.feature.begin(), edge.feature.end());
    }
    NpyInput input;
    input.edges = {{"", Save(directory_ / "e.npy", endpoints, {2, count})}};
    input.node_counts[""] = static_cast<int64_t>(node_times.size());
    input.edge_weights[""] = Save(directory_ / "w.npy", weights, {count});
    input.edge_types[""] = Save(directory_ / "t.npy", types, {count});
    input.edge_features[""] = Save(directory_ / "f.npy", features, {count, 2});
    if (options.edge_times) {
      input.edge_times[""] = Save(directory_ / "et.npy", times, {count});
    }
    if (options.node_times) {
      input.node_times[""] = Save(directory_ / "nt.npy", node_times,
                                  {static_cast<int64_t>(node_times.size())});
    }
    return input;
  }

  absl::StatusOr<Manifest> Import(const NpyInput& input,
                                  const ImportOptions& options,
                                  const char* name = "out") {
    const auto graph = OpenNpy(input);
    if (!graph.ok()) return graph.status();
    return ImportGraph(*graph, options, directory_ / name);
  }
};

// Compares the lists of `direction` with `edges`.
void ExpectLists(const EdgeColumns& columns, Direction direction,
                 std::vector<FullEdge> edges, bool has_times) {
  const bool in = direction == Direction::kIn;
  const NeighborLists& lists = columns.lists(direction);
  const auto node = [in](const FullEdge& edge) {
    return in ? edge.dst : edge.src;
  };
  std::sort(
      edges.begin(), edges.end(), [&](const FullEdge& a, const FullEdge& b) {
        const auto key = [&](const FullEdge& edge) {
          return std::tuple(node(edge), has_times ? edge.time : 0, edge.id);
        };
        return key(a) < key(b);
      });
  ASSERT_EQ(lists.edge_id.rows(), static_cast<int64_t>(edges.size()));
  ASSERT_EQ(lists.time.present(), has_times);
  const auto indptr = lists.indptr.As<int64_t>();
  for (int64_t i = 0; i < lists.edge_id.rows(); ++i) {
    const FullEdge& edge = edges[i];
    ASSERT_EQ(lists.edge_id.As<int64_t>()[i], edge.id) << i;
    EXPECT_EQ(lists.indices.IntegerAt(i), in ? edge.src : edge.dst);
    EXPECT_LE(indptr[node(edge)], i);
    EXPECT_GT(indptr[node(edge) + 1], i);
    EXPECT_EQ(lists.weight.As<float>()[i], edge.weight);
    EXPECT_EQ(lists.type.As<int32_t>()[i], edge.type);
    if (has_times) {
      EXPECT_EQ(lists.time.As<int64_t>()[i], edge.time);
    }
    const int64_t row = in ? i : lists.slot.As<int64_t>()[i];
    EXPECT_EQ(columns.feature.As<float>()[2 * row], edge.feature[0]);
    EXPECT_EQ(columns.feature.As<float>()[2 * row + 1], edge.feature[1]);
  }
}

TEST_F(ImporterTest, EqualsPlainComputationForAllOptions) {
  constexpr int64_t kNodes = 40, kEdges = 300;
  std::vector<FullEdge> user = RandomFullEdges(kNodes, kEdges, 5);
  std::vector<int64_t> node_times;
  for (int64_t i = 0; i < kNodes; ++i) node_times.push_back(i * 7 % 11);
  for (FullEdge& edge : user) {
    edge.time += std::max(node_times[edge.src], node_times[edge.dst]);
  }
  for (int bits = 0; bits < 96; ++bits) {
    SCOPED_TRACE(bits);
    const Case options{(bits & 1) != 0, (bits & 2) != 0,
                       (bits & 4) != 0, static_cast<SelfLoops>(bits / 32),
                       (bits & 8) != 0, (bits & 16) != 0};
    ImportOptions chosen;
    chosen.undirected = options.undirected;
    chosen.add_reverse = options.add_reverse;
    chosen.coalesce = options.coalesce;
    chosen.self_loops = options.loops;
    chosen.memory_bytes = bits % 2 == 0 ? 1 << 10 : 1 << 30;
    const auto manifest = Import(Write(user, node_times, options), chosen);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    const auto store = Store::Open(directory_ / "out").value();
    std::vector<std::vector<FullEdge>> relations = {user};
    if (options.undirected) {
      for (const FullEdge& edge : Backward(user, kEdges)) {
        relations[0].push_back(edge);
      }
    }
    if (options.add_reverse) relations.push_back(Backward(user, 0));
    ASSERT_EQ(store->schema().relations.size(), relations.size());
    for (size_t r = 0; r < relations.size(); ++r) {
      const bool doubled = r == 0 && options.undirected;
      const std::vector<FullEdge> edges =
          Finish(relations[r], kNodes, doubled ? 2 * kEdges : kEdges, options);
      int64_t largest = -1;
      for (const FullEdge& edge : edges) largest = std::max(largest, edge.id);
      EXPECT_EQ(store->schema().relations[r].max_edge_id, largest);
      for (Direction direction : {Direction::kIn, Direction::kOut}) {
        std::vector<FullEdge> expected = edges;
        for (FullEdge& edge : expected) {
          if (options.edge_times) continue;
          const bool in = direction == Direction::kIn;
          edge.time = node_times[in ? edge.src : edge.dst];
        }
        ExpectLists(store->partition(0)->edges[r], direction, expected,
                    options.edge_times || options.node_times);
      }
    }
    std::filesystem::remove_all(directory_ / "out");
  }
}

std::map<std::string, std::string> Files(const std::filesystem::path& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    if (entry.path().filename() == "store.json") continue;  // has a new uuid
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), root)] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

TEST_F(ImporterTest, MemoryDoesNotChangeTheBytes) {
  const Case options{.edge_times = true};
  const NpyInput input = Write(RandomFullEdges(3000, 20000, 9),
                               std::vector<int64_t>(3000), options);
  ImportOptions chosen;
  chosen.undirected = true;
  chosen.coalesce = true;
  ASSERT_TRUE(Import(input, chosen, "large").ok());
  chosen.memory_bytes = 16 << 10;
  ASSERT_TRUE(Import(input, chosen, "small").ok());
  EXPECT_TRUE(Files(directory_ / "large") == Files(directory_ / "small"));
}

class TinyImportTest : public ImporterTest {
 protected:
  // A graph of 4 nodes with the edges 0->1, 1->2 and 2->2.
  NpyInput Tiny() {
    NpyInput input;
    input.edges = {{"", Save(directory_ / "tiny.npy",
                             std::vector<int64_t>{0, 1, 2, 1, 2, 2}, {2, 3})}};
    input.node_counts[""] = 4;
    return input;
  }
  template <typename T>
  std::string File(std::vector<T> values, std::vector<int64_t> shape) {
    return Save(directory_ / "column.npy", std::move(values), std::move(shape));
  }
  void ExpectRefusal(const NpyInput& input, const char* what,
                     const ImportOptions& options = {}) {
    const auto manifest = Import(input, options);
    ASSERT_FALSE(manifest.ok());
    EXPECT_THAT(std::string(manifest.status().message()), HasSubstr(what));
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      EXPECT_EQ(entry.path().extension(), ".npy") << "left " << entry.path();
    }
  }
  std::vector<float> ImportFeature(std::vector<float> values,
                                   Normalization normalization) {
    NpyInput input = Tiny();
    input.features[""] = File(std::move(values), {4, 2});
    ImportOptions options;
    options.normalize_features = normalization;
    EXPECT_TRUE(Import(input, options).ok());
    const auto store = Store::Open(directory_ / "out");
    const auto feature = (*store)->partition(0)->nodes[0].feature.As<float>();
    return {feature.begin(), feature.end()};
  }
};

TEST_F(TinyImportTest, DividesShiftedRowsByTheirSum) {
  // The smallest value is -1; rows with sums below 1 are not divided.
  EXPECT_THAT(
      ImportFeature({-1, 3, 0, 0, -1, -1, -1, -0.5f}, Normalization::kRow),
      ElementsAreArray({0.f, 1.f, 0.5f, 0.5f, 0.f, 0.f, 0.f, 0.5f}));
}

TEST_F(TinyImportTest, StandardizesColumnsAndZeroesConstants) {
  EXPECT_THAT(ImportFeature({1, 0.1f, 3, 0.1f, 1, 0.1f, 3, 0.1f},
                            Normalization::kStandard),
              ElementsAreArray({-1.f, 0.f, 1.f, 0.f, -1.f, 0.f, 1.f, 0.f}));
}

// The sampler relies on this, since it checks only the times of edges.
TEST_F(TinyImportTest, RefusesEdgesEarlierThanTheirEndpoints) {
  NpyInput input = Tiny();
  input.node_times[""] =
      Save(directory_ / "nodes.npy", std::vector<int64_t>{5, -1, 7, 9}, {4});
  input.edge_times[""] = File(std::vector<int64_t>{5, 7, 7}, {3});
  EXPECT_TRUE(Import(input, {}, "fits").ok());
  std::filesystem::remove_all(directory_ / "fits");
  input.edge_times[""] = File(std::vector<int64_t>{4, 7, 7}, {3});
  ExpectRefusal(input,
                "column.npy: row 0: the edge from 0 to 1 of node__to__node has "
                "the time 4, before the time 5 of its source, node 0\n");
  input.edge_times[""] = File(std::vector<int64_t>{5, 6, 7}, {3});
  ExpectRefusal(input, "time 6, before the time 7 of its destination, node 2");
  // Edges that are left out of the graph may still be seeds.
  input.edge_times[""] = File(std::vector<int64_t>{5, 7, 0}, {3});
  ImportOptions options;
  options.self_loops = SelfLoops::kRemove;
  ExpectRefusal(input, "row 2: the edge from 2 to 2", options);
}

TEST_F(TinyImportTest, CountsNodesByLargestId) {
  NpyInput input = Tiny();
  input.node_counts.clear();
  const auto manifest = Import(input, {});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->schema.node_types[0].count, 3);
}

// A single wild id must not decide how much is written.
TEST_F(TinyImportTest, RefusesIdsWithLargeGapsUnlessAllowed) {
  NpyInput input;
  input.edges = {
      {"", File(std::vector<int64_t>{0, 1, 3'000'000'000, 2}, {2, 2})}};
  ExpectRefusal(input,
                "node type node would have 3000000001 nodes (ids 0 to "
                "3000000000), but only 2 edges touch one");
  EXPECT_EQ(ReasonOf(Import(input, {}).status()), "ids_with_gaps");
  input.edges = {{"", File(std::vector<int64_t>{0, 1, 1'100'000, 2}, {2, 2})}};
  ExpectRefusal(input, "1100001 nodes");
  input.node_counts[""] = 1'200'000;
  const auto manifest = Import(input, {});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->schema.node_types[0].count, 1'200'000);
}

TEST_F(TinyImportTest, SplitsLabelledNodesByFractions) {
  NpyInput input = Tiny();
  input.node_counts[""] = 100;
  std::vector<float> labels(100, 1);
  for (int i = 0; i < 20; ++i) labels[i * 5] = NAN;
  input.labels[""] = File(labels, {100});
  ImportOptions options;
  options.split_fractions = {0.5, 0.25, 0.25};
  const auto manifest = Import(input, options);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const auto store = Store::Open(directory_ / "out");
  std::set<int64_t> all;
  for (const auto& [name, count] :
       {std::pair("train", 40), std::pair("valid", 20),
        std::pair("test", 20)}) {
    const auto split = (*store)->FindSplit(0, name);
    ASSERT_TRUE(split.ok());
    EXPECT_EQ((*split)->original_id.rows(), count);
    for (int64_t id : (*split)->original_id.As<int64_t>()) {
      EXPECT_NE(id % 5, 0);
      EXPECT_TRUE(all.insert(id).second);
    }
  }
}

// The original ids in each split.
std::map<std::string, std::set<int64_t>> Splits(const Store& store) {
  std::map<std::string, std::set<int64_t>> splits;
  for (const SplitInfo& info : store.manifest().splits) {
    const auto ids = (*store.FindSplit(0, info.name))->original_id;
    for (int64_t id : ids.As<int64_t>()) splits[info.name].insert(id);
  }
  return splits;
}

TEST_F(TinyImportTest, DividesClassesEquallyAmongFolds) {
  NpyInput input = Tiny();
  input.node_counts[""] = 100;
  std::vector<int32_t> labels(100, 7);
  for (int i = 0; i < 33; ++i) labels[i * 3] = -2;
  input.labels[""] = File(labels, {100});
  ImportOptions options;
  options.folds = 4;
  ASSERT_TRUE(Import(input, options).ok());
  const auto store = Store::Open(directory_ / "out");
  auto splits = Splits(**store);
  ASSERT_EQ(splits.size(), 12);
  std::set<int64_t> tested;
  for (int fold = 0; fold < 4; ++fold) {
    const std::string number = std::to_string(fold);
    const auto& test = splits["test" + number];
    EXPECT_EQ(test.size(), 25);
    const auto rare = std::count_if(test.begin(), test.end(),
                                    [&](int64_t id) { return labels[id] < 0; });
    EXPECT_TRUE(rare == 8 || rare == 9) << rare;
    tested.insert(test.begin(), test.end());
    EXPECT_EQ(splits["valid" + number],
              splits["test" + std::to_string((fold + 1) % 4)]);
    std::set<int64_t> all = splits["train" + number];
    EXPECT_EQ(all.size(), 50);
    all.insert(test.begin(), test.end());
    all.insert(splits["valid" + number].begin(),
               splits["valid" + number].end());
    EXPECT_EQ(all.size(), 100);
  }
  EXPECT_EQ(tested.size(), 100);
}

TEST_F(TinyImportTest, FoldsDependOnTheSplitSeed) {
  NpyInput input = Tiny();
  input.node_counts[""] = 40;
  std::vector<float> labels(40, 0.5f);
  labels[11] = NAN;
  input.labels[""] = File(labels, {40});
  std::vector<std::map<std::string, std::set<int64_t>>> splits;
  for (uint64_t seed : {1, 2, 1}) {
    ImportOptions options;
    options.folds = 3;
    options.split_seed = seed;
    ASSERT_TRUE(Import(input, options).ok());
    splits.push_back(Splits(**Store::Open(directory_ / "out")));
    std::filesystem::remove_all(directory_ / "out");
  }
  EXPECT_EQ(splits[0], splits[2]);
  EXPECT_NE(splits[0], splits[1]);
  EXPECT_EQ(splits[0]["test0"].size(), 13);
  EXPECT_FALSE(splits[0]["train0"].contains(11));
}

TEST_F(TinyImportTest, RefusesInvalidFolds) {
  NpyInput input = Tiny();
  ImportOptions options;
  options.folds = 3;
  ExpectRefusal(input, "folds: labelled nodes are divided", options);
  input.labels[""] = File(std::vector<int32_t>{1, 2, 1, 2}, {4});
  options.folds = 5;
  ExpectRefusal(input, "folds 5: node type node has only 4", options);
  options.folds = 2;
  ExpectRefusal(input, "folds 2: at least 3 are needed", options);
  options.folds = 3;
  options.split_fractions = {0.5, 0.2, 0.2};
  ExpectRefusal(input, "cannot be used together", options);
}

TEST_F(TinyImportTest, SortsSplitsAndRefusesDuplicates) {
  NpyInput input = Tiny();
  input.train[""] = File(std::vector<int32_t>{3, 0, 2}, {3});
  ASSERT_TRUE(Import(input, {}, "sorted").ok());
  const auto store = Store::Open(directory_ / "sorted");
  const auto ids = (*(*store)->FindSplit(0, "train"))->original_id;
  EXPECT_THAT(ids.As<int64_t>(), ElementsAreArray({0, 2, 3}));
  std::filesystem::remove_all(directory_ / "sorted");
  input.train[""] = File(std::vector<int32_t>{3, 0, 3}, {3});
  ExpectRefusal(input, "column.npy: row 2: node 3 occurs twice");
}

TEST_F(TinyImportTest, ReadsPairsAndHalves) {
  NpyInput input = Tiny();
  input.edges[0].second = Save(directory_ / "pairs.npy",
                               std::vector<uint32_t>{0, 1, 2, 3, 1, 3}, {3, 2});
  std::vector<uint16_t> halves = {0x3c00, 0xc000, 0x0001, 0x3555};
  const Array feature =
      Array::Borrow(DType::kFloat16, {4}, halves.data(), nullptr);
  ASSERT_TRUE(WriteNpy(directory_ / "half.npy", feature).ok());
  input.features[""] = directory_ / "half.npy";
  ASSERT_TRUE(Import(input, {}).ok());
  const auto store = Store::Open(directory_ / "out");
  const Partition& part = *(*store)->partition(0);
  EXPECT_THAT(part.edges[0].in.indices.As<uint32_t>(),
              ElementsAreArray({0, 2, 1}));
  EXPECT_THAT(part.nodes[0].feature.As<float>(),
              ElementsAreArray({1.f, -2.f, 0x1p-24f, 0.333251953125f}));
}

TEST_F(TinyImportTest, ReadsBoolMasks) {
  NpyInput input = Tiny();
  std::string mask = FormatNpyHeader(DType::kUint8, {4});
  mask.replace(mask.find("|u1"), 3, "|b1");
  mask += std::string("\0\1\0\1", 4);
  std::ofstream(directory_ / "mask.npy", std::ios::binary) << mask;
  input.valid[""] = directory_ / "mask.npy";
  ASSERT_TRUE(Import(input, {}).ok());
  const auto store = Store::Open(directory_ / "out");
  EXPECT_THAT((*(*store)->FindSplit(0, "valid"))->original_id.As<int64_t>(),
              ElementsAreArray({1, 3}));
  input.node_counts[""] = 5;
  EXPECT_THAT(std::string(Import(input, {}, "other").status().message()),
              HasSubstr("a mask of 4 elements for 5 nodes"));
}

// A file without rows may claim any row length.
TEST_F(ImporterTest, RefusesRowsTooLargeForMemory) {
  const std::filesystem::path path = directory_ / "wide.npy";
  const std::string header =
      FormatNpyHeader(DType::kFloat32, {0, int64_t{1} << 59});
  std::ofstream(path, std::ios::binary) << header;
  const auto rows = OpenNpyRows(path);
  ASSERT_TRUE(absl::IsInvalidArgument(rows.status()));
  EXPECT_THAT(rows.status().message(), HasSubstr("a row has at most 1048576"));
}

TEST_F(ImporterTest, FakeGraphsRepeat) {
  const FakeInput input{1000, 8, 5, 4, 7};
  for (const char* name : {"one", "two"}) {
    const auto graph = MakeFake(input);
    ASSERT_TRUE(graph.ok());
    ASSERT_TRUE(ImportGraph(*graph, {}, directory_ / name).ok());
  }
  EXPECT_TRUE(Files(directory_ / "one") == Files(directory_ / "two"));
  const auto store = Store::Open(directory_ / "one");
  const NeighborLists& in = (*store)->partition(0)->edges[0].in;
  EXPECT_EQ(in.indices.rows(), 8000);
  int64_t same_class = 0;
  for (int64_t node = 0; node < 1000; ++node) {
    for (int64_t i = in.indptr.As<int64_t>()[node];
         i < in.indptr.As<int64_t>()[node + 1]; ++i) {
      same_class += in.indices.As<uint32_t>()[i] % 4 == node % 4 ? 1 : 0;
    }
  }
  // The expected share is 5/8; six standard deviations are 0.033.
  EXPECT_NEAR(static_cast<double>(same_class) / 8000, 0.625, 0.04);
}

TEST_F(TinyImportTest, AddsASplitOnce) {
  ASSERT_TRUE(Import(Tiny(), {}).ok());
  const NewSplit split{"mine", "", File(std::vector<int64_t>{2, 1}, {2})};
  const auto added = AddSplit(directory_ / "out", split);
  ASSERT_TRUE(added.ok()) << added.status();
  const auto store = Store::Open(directory_ / "out").value();
  const auto ids = (*store->FindSplit(0, "mine"))->id;
  EXPECT_THAT(ids.As<uint32_t>(), ElementsAreArray({1, 2}));
  EXPECT_EQ(AddSplit(directory_ / "out", split).status().code(),
            absl::StatusCode::kAlreadyExists);
}

// An edge of weight 0 is never drawn, so no other weight may become 0.
TEST_F(TinyImportTest, RefusesWeightsThatFloatsCannotHold) {
  NpyInput input = Tiny();
  input.edge_weights[""] = File(std::vector<double>{0, 1e-45, 3e38}, {3});
  EXPECT_TRUE(Import(input, {}, "fits").ok());
  std::filesystem::remove_all(directory_ / "fits");
  input.edge_weights[""] = File(std::vector<double>{0, 1e-50, 1}, {3});
  ExpectRefusal(input,
                "column.npy: row 1: weight 1e-50 is below the smallest float32 "
                "above 0, 1.4e-45\n");
  input.edge_weights[""] = File(std::vector<double>{0, 1, 1e39}, {3});
  ExpectRefusal(input, "row 2: weight 1e+39 is above the largest float32");
  input.edge_weights[""] = File(std::vector<double>{-1e-50, 1, 1}, {3});
  ExpectRefusal(input, "row 0: weight -1e-50 is negative");
}

TEST_F(TinyImportTest, NamesThePositionOfBadInput) {
  NpyInput input = Tiny();
  input.node_counts[""] = 2;
  ExpectRefusal(input, "tiny.npy: edge 1: destination 2 is out of range");
  input = Tiny();
  input.features[""] = File(std::vector<float>{1, 2, NAN, 4}, {4});
  ExpectRefusal(input, "column.npy: row 2: column 1 is NaN");
  input.features[""] = File(std::vector<float>{1, 2, 3}, {3});
  ExpectRefusal(input, "column.npy: 3 rows for 4 nodes");
  input = Tiny();
  input.edge_weights[""] = File(std::vector<float>{1, 2}, {2});
  ExpectRefusal(input, "column.npy: 2 rows, but");
  input.edge_weights[""] = File(std::vector<float>{0, 1, -0.5f}, {3});
  ExpectRefusal(input, "column.npy: row 2: weight -0.5 is negative");
  input.edge_weights[""] = File(std::vector<float>{0, INFINITY, 1}, {3});
  ExpectRefusal(input, "column.npy: row 1: weight inf is not finite");
  input = Tiny();
  input.edge_times[""] = File(std::vector<float>{1, 2, 3}, {3});
  ExpectRefusal(input, "dtype float32, but integers are needed");
  input = Tiny();
  input.test[""] = File(std::vector<int64_t>{4}, {1});
  ExpectRefusal(input, "row 0: node 4 is out of range");
  input = Tiny();
  input.edges[0].second = directory_ / "missing.npy";
  ExpectRefusal(input, "missing.npy");
  input.edges[0].second = File(std::vector<int64_t>{1, 2, 3}, {3, 1});
  ExpectRefusal(input, "an edge list has shape [2, E]");
  input = Tiny();
  ImportOptions options;
  options.split_fractions = {0.5, 0.6, 0.1};
  ExpectRefusal(input, "split_fractions", options);
}

// Reading a pipe or a device would never end.
TEST_F(TinyImportTest, RefusesWhatIsNotARegularFile) {
  const std::filesystem::path pipe = directory_ / "pipe.npy";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", directory_ / "link.npy");
  const std::string others[] = {pipe, "/dev/zero", directory_ / "link.npy",
                                directory_};
  for (const std::string& other : others) {
    NpyInput input = Tiny();
    input.edges[0].second = other;
    ExpectRefusal(input, other.c_str());
    input = Tiny();
    input.features[""] = other;
    ExpectRefusal(input, other.c_str());
  }
}

TEST_F(TinyImportTest, RefusesIdsThatAreNegative) {
  NpyInput input = Tiny();
  input.edges[0].second = File(std::vector<int64_t>{0, -1, 1, 2}, {2, 2});
  ExpectRefusal(input, "column.npy: edge 1: source -1 is out of range");
}

// Sums of such ids would overflow 64 bits.
TEST_F(TinyImportTest, RefusesIdsTooLargeForMemory) {
  NpyInput input;
  for (const int64_t id :
       {std::numeric_limits<int64_t>::max(), (int64_t{1} << 62) + 1}) {
    input.edges = {{"", File(std::vector<int64_t>{0, 1, 2, 1, 2, id}, {2, 3})}};
    ExpectRefusal(input, "column.npy: edge 2: node ");
    ExpectRefusal(input, " is above the largest id, 2^62\nids count from 0");
  }
}

TEST_F(TinyImportTest, NamesTheFileThatSaysHowManyNodes) {
  NpyInput input = Tiny();
  input.node_counts.clear();
  input.features[""] = File(std::vector<float>{1, 2}, {2});
  ExpectRefusal(input,
                "tiny.npy: edge 1: destination 2 is out of range: node type "
                "node has 2 nodes, because ");
  ExpectRefusal(input, "column.npy has 2 rows; ids are 0 to 1");
  input.labels[""] =
      Save(directory_ / "labels.npy", std::vector<int64_t>{1, 2, 3}, {3});
  ExpectRefusal(input, "labels.npy: 3 rows for 2 nodes (");
  ExpectRefusal(input, "column.npy has 2 rows); each node needs a row");
  input = Tiny();
  input.node_counts[""] = 2;
  ExpectRefusal(input, "has 2 nodes, because that number was given; ids are");
}

// Edges between nodes of two types are no self loops, even if the nodes have
// the same number.
TEST_F(TinyImportTest, EdgesBetweenTypesAreNoSelfLoops) {
  NpyInput input;
  input.edges = {
      {"a__x__b", File(std::vector<int64_t>{0, 1, 0, 0, 1, 1}, {2, 3})}};
  for (const SelfLoops loops :
       {SelfLoops::kKeep, SelfLoops::kAdd, SelfLoops::kRemove}) {
    ImportOptions options;
    options.self_loops = loops;
    options.undirected = true;
    options.add_reverse = true;
    const auto manifest = Import(input, options);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    ASSERT_EQ(manifest->schema.relations.size(), 2u);
    EXPECT_EQ(manifest->schema.RelationName(1), "b__rev_x__a");
    const auto store = Store::Open(directory_ / "out").value();
    for (const EdgeColumns& edges : store->partition(0)->edges) {
      EXPECT_EQ(edges.in.edge_id.rows(), 3);
      EXPECT_EQ(edges.out.edge_id.rows(), 3);
    }
    EXPECT_THAT(store->partition(0)->edges[1].in.indices.As<uint32_t>(),
                ElementsAreArray({0, 1, 1}));
    std::filesystem::remove_all(directory_ / "out");
  }
}

// If only one end has times, only lists of such neighbours have them.
TEST_F(TinyImportTest, ListsHaveTheTimesOfTheirNeighbours) {
  NpyInput input;
  input.edges = {
      {"a__x__b", Save(directory_ / "e.npy",
                       std::vector<int64_t>{0, 2, 1, 1, 1, 0}, {2, 3})}};
  input.node_times["a"] = File(std::vector<int64_t>{30, 10, 20}, {3});
  ImportOptions options;
  options.add_reverse = true;
  const auto manifest = Import(input, options);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_TRUE(manifest->schema.node_types[0].has_time);
  EXPECT_FALSE(manifest->schema.node_types[1].has_time);
  const auto store = Store::Open(directory_ / "out").value();
  const EdgeColumns &forward = store->partition(0)->edges[0],
                    &backward = store->partition(0)->edges[1];
  EXPECT_THAT(forward.in.time.As<int64_t>(), ElementsAreArray({10, 20, 30}));
  EXPECT_THAT(forward.in.edge_id.As<int64_t>(), ElementsAreArray({2, 1, 0}));
  EXPECT_FALSE(forward.out.time.present());
  EXPECT_FALSE(backward.in.time.present());
  EXPECT_THAT(backward.out.time.As<int64_t>(), ElementsAreArray({10, 20, 30}));
  for (const Relation& relation : manifest->schema.relations) {
    EXPECT_EQ(relation.time, ListTime::kNeighbor);
  }
}

TEST_F(TinyImportTest, EdgeTypesHave32Bits) {
  const int64_t least = std::numeric_limits<int32_t>::min(),
                most = std::numeric_limits<int32_t>::max();
  NpyInput input = Tiny();
  input.edge_types[""] = File(std::vector<int64_t>{least, most, 0}, {3});
  EXPECT_TRUE(Import(input, {}, "fits").ok());
  std::filesystem::remove_all(directory_ / "fits");
  input.edge_types[""] = File(std::vector<int64_t>{0, least - 1, 0}, {3});
  ExpectRefusal(input, "row 1: edge type -2147483649 does not fit in 32 bits");
  input.edge_types[""] = File(std::vector<int64_t>{0, 0, most + 1}, {3});
  ExpectRefusal(input, "row 2: edge type 2147483648 does not fit in 32 bits");
}

TEST_F(TinyImportTest, ColumnsHaveTheirWidth) {
  const auto wide = [&](int64_t rows) {
    return File(std::vector<int64_t>(static_cast<size_t>(2 * rows), 1),
                {rows, 2});
  };
  for (const auto column : {&NpyInput::edge_weights, &NpyInput::edge_times,
                            &NpyInput::edge_types}) {
    NpyInput input = Tiny();
    (input.*column)[""] = wide(3);
    ExpectRefusal(input,
                  "column.npy: 2 numbers per row, but an edge needs one");
  }
  NpyInput input = Tiny();
  input.node_times[""] = wide(4);
  ExpectRefusal(input,
                "column.npy: 2 numbers per row, but a node has one time");
  input = Tiny();
  input.edge_features[""] = File(std::vector<float>{1, 2, NAN}, {3});
  ExpectRefusal(input, "column.npy: row 2: column 1 is NaN; a finite number");
  input = Tiny();
  input.labels[""] = File(std::vector<float>{1, NAN, INFINITY, 1}, {4});
  ExpectRefusal(input,
                "column.npy: row 2: column 1 is infinite; a number or NaN");
}

// A node is labelled if one of its labels is a number.
TEST_F(TinyImportTest, NodesWithSomeLabelsAreLabelled) {
  NpyInput input = Tiny();
  input.labels[""] =
      File(std::vector<float>{NAN, NAN, 1, NAN, NAN, 0, 3, 4}, {4, 2});
  ImportOptions options;
  options.split_fractions = {1, 0, 0};
  const auto manifest = Import(input, options);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  ASSERT_EQ(manifest->splits.size(), 3u);
  EXPECT_EQ(manifest->schema.node_types[0].label.row_shape[0], 2);
  const auto store = Store::Open(directory_ / "out").value();
  EXPECT_THAT((*store->FindSplit(0, "train"))->original_id.As<int64_t>(),
              ElementsAreArray({1, 2, 3}));
}

TEST_F(TinyImportTest, SplitsHaveTheTimesOfTheirNodes) {
  NpyInput input = Tiny();
  input.node_times[""] =
      Save(directory_ / "times.npy", std::vector<int64_t>{40, 30, 20, 10}, {4});
  input.test[""] = File(std::vector<int64_t>{3, 0, 2}, {3});
  ASSERT_TRUE(Import(input, {}).ok());
  const auto store = Store::Open(directory_ / "out").value();
  EXPECT_THAT((*store->FindSplit(0, "test"))->time.As<int64_t>(),
              ElementsAreArray({40, 20, 10}));
}

TEST_F(TinyImportTest, RefusesToMakeSplitsThatAreGiven) {
  NpyInput input = Tiny();
  input.labels[""] =
      Save(directory_ / "labels.npy", std::vector<int64_t>{1, 2, 3, 4}, {4});
  input.test[""] = File(std::vector<int64_t>{3}, {1});
  ImportOptions options;
  options.split_fractions = {0.5, 0.25, 0.25};
  ExpectRefusal(input,
                "split_fractions: this input already has splits\nleave one of",
                options);
  options = {};
  options.folds = 3;
  ExpectRefusal(input, "folds: this input already has splits\nleave one of",
                options);
  options = {};
  options.split_fractions = {0.5, 0.25, 0.25};
  ExpectRefusal(Tiny(),
                "split_fractions: labelled nodes are divided, but this input "
                "has no labels",
                options);
}

// Wide rows are read in several blocks.
TEST_F(TinyImportTest, NormalizesAcrossBlocks) {
  constexpr int64_t kWidth = 200'000;
  NpyInput input = Tiny();
  std::vector<float> values(4 * kWidth, 0);
  for (int64_t i = 0; i < kWidth; ++i) {
    values[i] = 1;  // 1, 3, 1, 3 in every column
    values[kWidth + i] = values[3 * kWidth + i] = 3;
    values[2 * kWidth + i] = 1;
  }
  // The smallest value is neither in the first row nor in the last.
  values[2 * kWidth + 7] = -5;
  values[3 * kWidth + 7] = 1;
  input.features[""] = File(values, {4, kWidth});
  const auto imported = [&](Normalization normalization) {
    ImportOptions options;
    options.normalize_features = normalization;
    EXPECT_TRUE(Import(input, options).ok());
    const auto store = Store::Open(directory_ / "out").value();
    const auto feature = store->partition(0)->nodes[0].feature.As<float>();
    std::filesystem::remove_all(directory_ / "out");
    return std::vector<float>(feature.begin(), feature.end());
  };
  std::vector<float> feature = imported(Normalization::kRow);
  ASSERT_EQ(feature.size(), values.size());
  EXPECT_FLOAT_EQ(feature[0], 1.f / kWidth);  // 6 of a sum of 6 * kWidth
  EXPECT_EQ(feature[2 * kWidth + 7], 0);
  feature = imported(Normalization::kStandard);
  EXPECT_FLOAT_EQ(feature[0], -1);
  EXPECT_FLOAT_EQ(feature[kWidth], 1);
  EXPECT_FLOAT_EQ(feature[4 * kWidth - 1], 1);
  // 1, 3, -5, 1 have the mean 0 and the variance 9.
  EXPECT_FLOAT_EQ(feature[kWidth + 7], 1);
  EXPECT_FLOAT_EQ(feature[2 * kWidth + 7], -5.f / 3);
  EXPECT_EQ(imported(Normalization::kNone), values);
  values[2 * kWidth + 9] = NAN;
  input.features[""] = File(values, {4, kWidth});
  ExpectRefusal(input, "column.npy: row 2: column 10 is NaN; a finite number");
}

// The edges are wrong too, but cheap checks come first.
class CheapChecksTest : public TinyImportTest {
 protected:
  NpyInput WrongEdges(const std::string& relation = "") {
    NpyInput input;
    input.edges = {
        {relation, Save(directory_ / "wrong.npy",
                        std::vector<int64_t>{0, -1, 1, 2, 2, 3}, {2, 3})}};
    return input;
  }
};

TEST_F(CheapChecksTest, NamesAreCheckedBeforeEdgesAreRead) {
  ExpectRefusal(WrongEdges("a__wei\xc3\x9f__b"),
                "cannot name a node type, relation or split");
  ExpectRefusal(WrongEdges("a__" + std::string(81, 'x') + "__b"),
                "cannot name a node type, relation or split: 1 to 80 ASCII");
  ExpectRefusal(WrongEdges("a__,__b"), "it has '=' or ','");
  NpyInput twice = WrongEdges("a__x__b");
  twice.edges.push_back(twice.edges[0]);
  ExpectRefusal(twice, "relation a__x__b is given twice");
  NpyInput reverse = WrongEdges("a__x__b");
  reverse.edges.emplace_back("b__rev_x__a", reverse.edges[0].second);
  reverse.node_counts = {{"a", 9}, {"b", 9}};
  ImportOptions options;
  options.add_reverse = true;
  ExpectRefusal(reverse, "relation b__rev_x__a is given twice", options);
}

TEST_F(CheapChecksTest, SplitsAreCheckedBeforeTheGraphIsRead) {
  NpyInput input = WrongEdges();
  input.test[""] = File(std::vector<float>{1}, {1});
  ExpectRefusal(input, "column.npy: dtype float32, but integers");
  input.node_counts[""] = 4;
  input.features[""] =
      Save(directory_ / "nan.npy", std::vector<float>{1, NAN, 1, 1}, {4});
  input.test[""] = File(std::vector<int64_t>{3, 4}, {2});
  ExpectRefusal(input, "column.npy: row 1: node 4 is out of range");
  input.test[""] = File(std::vector<int64_t>{3, 3}, {2});
  ExpectRefusal(input, "column.npy: row 1: node 3 occurs twice");
  input.test.clear();
  input.test["node__to__node"] = File(std::vector<int64_t>{2, 3}, {2});
  ExpectRefusal(input,
                "column.npy: row 1: edge id 3 is out of range: node__to__node "
                "has 3 edges, ids are 0 to 2");
  input.test["node__to__node"] = File(std::vector<int64_t>{0, 1, 2, 4}, {2, 2});
  ExpectRefusal(input, "column.npy: row 1: node 4 is out of range");
}

TEST_F(CheapChecksTest, MasksMustMatchTheNodeCountFromEdges) {
  NpyInput input = Tiny();
  input.node_counts.clear();
  std::ofstream mask(directory_ / "mask.npy", std::ios::binary);
  mask << "\x93NUMPY\1" << '\0' << "\x42" << '\0'
       << "{'descr': '|b1', 'fortran_order': False, 'shape': (5,), }"
       << "        \n"
       << std::string(5, '\1');
  mask.close();
  input.test[""] = directory_ / "mask.npy";
  ExpectRefusal(input, "mask.npy: a mask of 5 elements for 3 nodes");
}

TEST_F(CheapChecksTest, SplitsWithoutSeedsAreNoticed) {
  NpyInput input = WrongEdges();
  input.node_counts[""] = 4;
  input.train[""] = File(std::vector<int64_t>{}, {0});
  ExpectRefusal(input,
                "column.npy: the split train of node has no seeds\ngive some");
  input.train.clear();
  input.train["node__to__node"] = File(std::vector<int64_t>{}, {0, 2});
  ExpectRefusal(input, "the split train of node__to__node has no seeds");
  // Another split may be empty.
  const testing::CapturedLog log;
  input = Tiny();
  input.valid[""] = File(std::vector<int64_t>{}, {0});
  const auto manifest = Import(input, {});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->splits[0].count, 0);
  EXPECT_THAT(log.text(),
              AllOf(HasSubstr("a split has no seeds file="),
                    HasSubstr("/column.npy split=valid type=node\n")));
}

TEST_F(CheapChecksTest, ChecksMemoryForTheNodes) {
  NpyInput input = Tiny();
  input.node_counts[""] = int64_t{1} << 50;
  ExpectRefusal(input, "importing 1125899906842624 nodes needs 16.0 PiB of");
  EXPECT_EQ(ReasonOf(Import(input, {}).status()), "import_too_large");
  const auto fake = MakeFake({.nodes = int64_t{1} << 48,
                              .average_degree = 0,
                              .features = 1,
                              .classes = 2});
  ASSERT_TRUE(fake.ok()) << fake.status();
  const auto status = ImportGraph(*fake, {}, directory_ / "out").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("needs 8.0 PiB of"));
}

TEST_F(CheapChecksTest, ChecksMemoryForDividingTheEdges) {
  const auto fake = MakeFake({.nodes = int64_t{1} << 20,
                              .average_degree = int64_t{1} << 20,
                              .features = 1,
                              .classes = 2});
  ASSERT_TRUE(fake.ok()) << fake.status();
  ImportOptions options;
  options.edge_split_fractions = {0.8, 0.1, 0.1};
  const auto status = ImportGraph(*fake, options, directory_ / "out").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("dividing 1099511627776 edges into splits needs "
                        "16.0 TiB of memory, but "));
}

}  // namespace
}  // namespace millrace
