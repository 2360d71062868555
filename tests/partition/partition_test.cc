// SPDX-License-Identifier: Apache-2.0
#include "common/partition/partition.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/field_error.h"
#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/ingest/add_split.h"
#include "common/partition/assignment.h"
#include "common/partition/partition_nodes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/store_builder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using testing::BuildDataset;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::RampFeature;
using testing::RichGraph;
using testing::SmallGraph;
using ::testing::StartsWith;
using testing::TestDirectory;
using testing::TestGraph;
using testing::TestRelation;

// One entry of a neighbour list, with all numbers as the user knows them.
struct Entry {
  int64_t neighbor = 0;
  int64_t edge_id = 0;
  float weight = 0;
  int64_t time = 0;
  int32_t type = 0;
  std::vector<float> feature = {};

  friend bool operator==(const Entry&, const Entry&) = default;
};
void PrintTo(const Entry& entry, std::ostream* out) {
  *out << "{" << entry.neighbor << ", edge " << entry.edge_id << "}";
}
using Lists = std::vector<std::vector<Entry>>;  // by original id

std::vector<float> FloatRow(const Array& array, int64_t row) {
  const auto width = static_cast<size_t>(array.shape()[1]);
  const auto values = array.As<float>().subspan(row * width, width);
  return {values.begin(), values.end()};
}

// The lists that `graph` must give, computed directly from its edges.
Lists ExpectedLists(const TestGraph& graph, const Schema& schema, int index,
                    Direction direction) {
  const TestRelation& relation = graph.relations[index];
  const bool in = direction == Direction::kIn;
  const Relation& described = schema.relations[index];
  const auto& nodes = graph.types[in ? described.dst : described.src];
  const auto& neighbors = graph.types[in ? described.src : described.dst];
  Lists lists(nodes.count);
  for (size_t i = 0; i < relation.edges.size(); ++i) {
    const auto [src, dst] = relation.edges[i];
    Entry entry;
    entry.neighbor = in ? src : dst;
    entry.edge_id = static_cast<int64_t>(i);
    if (!relation.weight.empty()) entry.weight = relation.weight[i];
    if (!relation.type.empty()) entry.type = relation.type[i];
    if (!relation.time.empty()) {
      entry.time = relation.time[i];
    } else if (!neighbors.time.empty()) {
      entry.time = neighbors.time[entry.neighbor];
    }
    if (relation.feature.present()) {
      entry.feature = FloatRow(relation.feature, entry.edge_id);
    }
    lists[in ? dst : src].push_back(std::move(entry));
  }
  for (auto& list : lists) {
    std::stable_sort(
        list.begin(), list.end(),
        [](const auto& a, const auto& b) { return a.time < b.time; });
  }
  return lists;
}

// Original ids by id.
std::vector<int64_t> Originals(const Store& store, TypeIndex type) {
  std::vector<int64_t> originals;
  for (int part = 0; part < store.partition_count(); ++part) {
    const Array& ids = store.partition(part)->nodes[type].original_id;
    for (int64_t i = 0; i < ids.rows(); ++i) {
      originals.push_back(ids.IntegerAt(i));
    }
  }
  return originals;
}

class ListReader {
 public:
  ListReader(const Store& store, RelationIndex relation, Direction direction)
      : store_(store), relation_(relation), direction_(direction) {
    const Relation& described = store.schema().relations[relation];
    const bool in = direction == Direction::kIn;
    type_ = in ? described.dst : described.src;
    neighbor_type_ = in ? described.src : described.dst;
    neighbors_ = Originals(store, neighbor_type_);
  }

  Lists Read() const {
    Lists lists(store_.schema().node_types[type_].count);
    for (int part = 0; part < store_.partition_count(); ++part) {
      const NeighborLists& stored =
          store_.partition(part)->edges[relation_].lists(direction_);
      const Array& ids = store_.partition(part)->nodes[type_].original_id;
      for (int64_t row = 0; row < ids.rows(); ++row) {
        auto& list = lists[ids.IntegerAt(row)];
        for (int64_t i = stored.indptr.IntegerAt(row);
             i < stored.indptr.IntegerAt(row + 1); ++i) {
          list.push_back(EntryAt(part, stored, i));
        }
      }
    }
    return lists;
  }

 private:
  Entry EntryAt(int part, const NeighborLists& stored, int64_t i) const {
    Entry entry;
    const int64_t id = stored.indices.IntegerAt(i);
    entry.neighbor = neighbors_.at(id);
    entry.edge_id = stored.edge_id.IntegerAt(i);
    if (stored.weight.present()) entry.weight = stored.weight.As<float>()[i];
    if (stored.time.present()) entry.time = stored.time.IntegerAt(i);
    if (stored.type.present()) entry.type = stored.type.As<int32_t>()[i];
    const bool in = direction_ == Direction::kIn;
    const int owner = in ? part : store_.book(neighbor_type_).Owner(id);
    const Array& feature = store_.partition(owner)->edges[relation_].feature;
    if (feature.present()) {
      entry.feature = FloatRow(feature, in ? i : stored.slot.IntegerAt(i));
    }
    return entry;
  }

  const Store& store_;
  const RelationIndex relation_;
  const Direction direction_;
  TypeIndex type_ = 0;
  TypeIndex neighbor_type_ = 0;
  std::vector<int64_t> neighbors_;
};

// A graph of `nodes` nodes, the last of which is isolated, with skewed degrees,
// multi-edges and self loops.
TestGraph RandomGraph(int64_t nodes, int64_t edges) {
  std::mt19937_64 random(17);
  TestGraph graph;
  graph.types.push_back({.count = nodes, .feature = RampFeature(nodes, 3)});
  TestRelation relation;
  for (int64_t i = 0; i < edges; ++i) {
    const auto a = static_cast<int64_t>(random() % (nodes - 1));
    const auto b = static_cast<int64_t>(random() % (nodes - 1));
    relation.edges.emplace_back(a * b / nodes, b);
  }
  graph.relations.push_back(std::move(relation));
  std::vector<int64_t> train;
  for (int64_t v = 0; v < nodes; v += 3) train.push_back(v);
  graph.splits.push_back({.ids = std::move(train)});
  return graph;
}

// Two densely connected groups of nodes with a few edges between them.
TestGraph TwoCommunities(int64_t nodes_each) {
  std::mt19937_64 random(5);
  TestGraph graph;
  graph.types.push_back({.count = 2 * nodes_each});
  TestRelation relation;
  for (int64_t i = 0; i < 20 * nodes_each; ++i) {
    const auto group = static_cast<int64_t>(random() % 2);
    const bool across = random() % 50 == 0;
    const auto member = [&] {
      return static_cast<int64_t>(random() % nodes_each) * 2;
    };
    relation.edges.emplace_back(member() + group,
                                member() + (across ? 1 - group : group));
  }
  graph.relations.push_back(std::move(relation));
  return graph;
}

TestGraph GraphByName(const std::string& name) {
  if (name == "rich") {
    TestGraph graph = RichGraph();
    for (auto& relation : graph.relations) relation.out = true;
    return graph;
  }
  if (name == "small") return SmallGraph();
  return RandomGraph(200, 1500);
}

struct Partitioned {
  std::filesystem::path path;
  std::unique_ptr<Store> store;
  PartitionReport report;
};

// The test's name without the slashes of parameterised tests.
std::string TestName() {
  std::string name =
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

class PartitionTest : public ::testing::Test {
 protected:
  PartitionTest() : directory_(TestDirectory(TestName())) {}
  ~PartitionTest() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path Dataset(const TestGraph& graph) {
    const std::filesystem::path path = directory_ / "dataset";
    std::filesystem::remove_all(path);
    const absl::Status built = BuildDataset(graph, path);
    EXPECT_TRUE(built.ok()) << built;
    return path;
  }

  // Partitions the dataset that Dataset() wrote.
  Partitioned Run(const PartitionOptions& options) {
    Partitioned result;
    result.path = directory_ / std::to_string(stores_++);
    absl::StatusOr<PartitionReport> report =
        PartitionDataset(directory_ / "dataset", result.path, options);
    EXPECT_TRUE(report.ok()) << report.status();
    result.report = *std::move(report);
    const absl::Status verified = VerifyStore(result.path);
    EXPECT_TRUE(verified.ok()) << verified;
    result.store = Store::Open(result.path).value();
    return result;
  }

  absl::Status Error(const PartitionOptions& options) {
    const auto target = directory_ / "refused";
    const absl::Status status =
        PartitionDataset(directory_ / "dataset", target, options).status();
    EXPECT_FALSE(status.ok());
    EXPECT_FALSE(std::filesystem::exists(target));
    return status;
  }

  // Writes a .npy file to the test's directory.
  std::filesystem::path WriteFile(const std::string& name, const Array& array) {
    const std::filesystem::path path = directory_ / name;
    EXPECT_TRUE(WriteNpy(path, array).ok());
    return path;
  }

  std::map<std::string, std::filesystem::path> GivenFiles(
      const TestGraph& graph, int parts) {
    std::map<std::string, std::filesystem::path> files;
    for (const auto& type : graph.types) {
      std::vector<int64_t> owners;
      for (int64_t v = 0; v < type.count; ++v) owners.push_back(v * v % parts);
      files[type.name] =
          WriteFile("owners_" + type.name + std::to_string(stores_) + ".npy",
                    Array::Adopt(std::move(owners)));
    }
    return files;
  }

  const std::filesystem::path directory_;
  int stores_ = 0;
};

void ExpectSameLists(const TestGraph& graph, const Store& store,
                     Direction direction) {
  for (size_t i = 0; i < graph.relations.size(); ++i) {
    const auto relation = static_cast<int>(i);
    EXPECT_EQ(ListReader(store, relation, direction).Read(),
              ExpectedLists(graph, store.schema(), relation, direction))
        << store.schema().RelationName(relation) << " "
        << DirectionName(direction);
  }
}

void ExpectSameRows(const Array& original, const Array& stored,
                    int64_t original_row, int64_t row) {
  ASSERT_EQ(stored.present(), original.present());
  if (!stored.present()) return;
  ASSERT_EQ(stored.dtype(), original.dtype());
  ASSERT_EQ(stored.row_bytes(), original.row_bytes());
  EXPECT_EQ(0, std::memcmp(stored.data() + row * stored.row_bytes(),
                           original.data() + original_row * stored.row_bytes(),
                           stored.row_bytes()));
}

// Compares columns, lookup tables and the order of ids.
void ExpectSameNodes(const TestGraph& graph, const Store& store) {
  for (size_t t = 0; t < graph.types.size(); ++t) {
    const auto type = static_cast<int>(t);
    std::vector<int64_t> originals = Originals(store, type);
    const PartitionBook& book = store.book(type);
    for (size_t id = 0; id < originals.size(); ++id) {
      const int part = book.Owner(id);
      const NodeColumns& columns = store.partition(part)->nodes[type];
      const auto row = static_cast<int64_t>(id - book.begin(part));
      const int64_t original = originals[id];
      ExpectSameRows(graph.types[t].feature, columns.feature, original, row);
      ExpectSameRows(graph.types[t].label, columns.label, original, row);
      if (columns.time.present()) {
        EXPECT_EQ(columns.time.IntegerAt(row), graph.types[t].time[original]);
      }
      const auto lookup_part = static_cast<int>(original / book.lookup_width());
      EXPECT_EQ(
          store.partition(lookup_part)
              ->nodes[type]
              .lookup.IntegerAt(original - lookup_part * book.lookup_width()),
          static_cast<int64_t>(id));
      if (row == 0) continue;
      const auto hotness = columns.hotness.As<float>();
      EXPECT_THAT(std::tuple(-hotness[row - 1], originals[id - 1]),
                  ::testing::Lt(std::tuple(-hotness[row], original)));
    }
    std::sort(originals.begin(), originals.end());
    for (int64_t v = 0; v < graph.types[t].count; ++v) {
      ASSERT_EQ(originals.at(v), v);
    }
  }
}

void ExpectSameSplits(const TestGraph& graph, const Store& store) {
  for (const auto& split : graph.splits) {
    const TypeIndex type = store.schema().FindType(split.type).value();
    const Split* stored = store.FindSplit(type, split.name).value();
    const auto originals = stored->original_id.As<int64_t>();
    EXPECT_EQ(std::vector<int64_t>(originals.begin(), originals.end()),
              split.ids);
    const std::vector<int64_t> original_of = Originals(store, type);
    std::vector<int64_t> counts(store.partition_count(), 0);
    for (size_t i = 0; i < split.ids.size(); ++i) {
      const int64_t id = stored->id.IntegerAt(static_cast<int64_t>(i));
      EXPECT_EQ(original_of.at(id), split.ids[i]);
      ++counts[store.book(type).Owner(id)];
    }
    for (const SplitInfo& info : store.manifest().splits) {
      if (info.type == type && info.name == split.name) {
        EXPECT_EQ(info.part_counts, counts);
      }
    }
  }
}

class EveryMethodTest : public PartitionTest,
                        public ::testing::WithParamInterface<
                            std::tuple<std::string, PartitionMethod, int>> {};

TEST_P(EveryMethodTest, HoldsTheGraphOfTheDataset) {
  const auto& [name, method, parts] = GetParam();
  const TestGraph graph = GraphByName(name);
  Dataset(graph);
  for (const StoredDirections directions :
       {StoredDirections::kIn, StoredDirections::kOut,
        StoredDirections::kBoth}) {
    PartitionOptions options;
    options.parts = parts;
    options.method = method;
    options.directions = directions;
    options.memory_bytes = 1000;  // windows of few lists
    if (method == PartitionMethod::kGiven) {
      options.assignment = GivenFiles(graph, parts);
    }
    const Partitioned result = Run(options);
    const Store& store = *result.store;
    EXPECT_EQ(store.partition_count(), parts);
    EXPECT_EQ(store.manifest().partitioning.method,
              PartitionMethodName(method));
    ExpectSameNodes(graph, store);
    ExpectSameSplits(graph, store);
    const bool in = directions != StoredDirections::kOut;
    const bool out = directions != StoredDirections::kIn;
    for (const EdgeColumns& edges : store.partition(0)->edges) {
      EXPECT_EQ(edges.in.present(), in);
      EXPECT_EQ(edges.out.present(), out);
    }
    if (in) ExpectSameLists(graph, store, Direction::kIn);
    if (out) ExpectSameLists(graph, store, Direction::kOut);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Stores, EveryMethodTest,
    ::testing::Combine(::testing::Values("small", "rich", "random"),
                       ::testing::Values(PartitionMethod::kMetis,
                                         PartitionMethod::kLdg,
                                         PartitionMethod::kRandom,
                                         PartitionMethod::kHash,
                                         PartitionMethod::kGiven),
                       ::testing::Values(1, 2, 3, 7)),
    [](const auto& info) {
      return std::get<0>(info.param) + "_" +
             std::string(PartitionMethodName(std::get<1>(info.param))) + "_" +
             std::to_string(std::get<2>(info.param));
    });

TEST_F(PartitionTest, AsManyPartsAsNodesMayLeaveSomeEmpty) {
  const TestGraph graph = SmallGraph();
  const auto nodes = static_cast<int>(graph.types[0].count);
  Dataset(graph);
  for (const PartitionMethod method :
       {PartitionMethod::kMetis, PartitionMethod::kLdg,
        PartitionMethod::kRandom, PartitionMethod::kHash}) {
    PartitionOptions options;
    options.parts = nodes;
    options.method = method;
    const Partitioned result = Run(options);
    EXPECT_EQ(result.store->partition_count(), nodes);
    ExpectSameLists(graph, *result.store, Direction::kIn);
    ExpectSameNodes(graph, *result.store);
  }
}

TEST_F(PartitionTest, RefusesMorePartsThanNodes) {
  const TestGraph graph = SmallGraph();
  const auto nodes = static_cast<int>(graph.types[0].count);
  Dataset(graph);
  for (const PartitionMethod method :
       {PartitionMethod::kMetis, PartitionMethod::kLdg,
        PartitionMethod::kRandom, PartitionMethod::kHash,
        PartitionMethod::kGiven}) {
    PartitionOptions options;
    options.parts = nodes + 1;
    options.method = method;
    if (method == PartitionMethod::kGiven) {
      options.assignment = GivenFiles(graph, options.parts);
    }
    const absl::Status error = Error(options);
    EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(error.message()),
                AllOf(StartsWith(StrCat("parts ", nodes + 1, ": ")),
                      HasSubstr(StrCat("has only ", nodes, " nodes"))));
  }
}

TEST_F(PartitionTest, GraphWithoutEdgesIsDivided) {
  TestGraph graph;
  graph.types.push_back({.count = 10});
  graph.relations.push_back({});
  Dataset(graph);
  PartitionOptions options;
  options.parts = 2;
  const Partitioned result = Run(options);
  EXPECT_EQ(result.report.parts[0].nodes, 5);
  EXPECT_EQ(result.report.parts[1].nodes, 5);
  EXPECT_EQ(result.report.edge_balance(), 1);
}

TEST_F(PartitionTest, SameSeedGivesSameFiles) {
  Dataset(RandomGraph(300, 3000));
  for (const PartitionMethod method :
       {PartitionMethod::kMetis, PartitionMethod::kLdg,
        PartitionMethod::kRandom, PartitionMethod::kHash}) {
    PartitionOptions options;
    options.parts = 3;
    options.method = method;
    options.seed = 9;
    const Partitioned first = Run(options);
    options.memory_bytes = 500;
    const Partitioned second = Run(options);
    EXPECT_EQ(first.store->manifest().fingerprint,
              second.store->manifest().fingerprint);
    options.seed = 10;
    const Partitioned third = Run(options);
    EXPECT_EQ(first.store->manifest().fingerprint ==
                  third.store->manifest().fingerprint,
              method == PartitionMethod::kLdg);
  }
}

TEST_F(PartitionTest, AllPartitioningsHaveTheSameDatasetFingerprint) {
  const auto dataset = Store::Open(Dataset(RandomGraph(30, 100))).value();
  const Manifest& whole = dataset->manifest();
  EXPECT_EQ(whole.dataset_fingerprint, whole.fingerprint);
  PartitionOptions options;
  options.method = PartitionMethod::kHash;
  for (const int parts : {1, 2, 5}) {
    options.parts = parts;
    EXPECT_EQ(Run(options).store->manifest().dataset_fingerprint,
              whole.dataset_fingerprint);
  }
}

TEST_F(PartitionTest, CastFeaturesAreAnotherDataset) {
  Dataset(RichGraph());
  PartitionOptions options;
  options.parts = 2;
  options.method = PartitionMethod::kHash;
  const Partitioned stored = Run(options);
  options.feature_dtype = DType::kFloat16;
  const Partitioned cast = Run(options);
  options.method = PartitionMethod::kRandom;
  const Partitioned other = Run(options);
  EXPECT_NE(cast.store->manifest().dataset_fingerprint,
            stored.store->manifest().dataset_fingerprint);
  EXPECT_EQ(cast.store->manifest().dataset_fingerprint,
            other.store->manifest().dataset_fingerprint);
}

TEST_F(PartitionTest, AnAddedSplitIsTheSameInAllPartitionings) {
  const auto dataset = Dataset(RandomGraph(30, 100));
  const auto identity = [](const std::filesystem::path& path) {
    const auto store = Store::Open(path).value();
    const Manifest& manifest = store->manifest();
    const auto place = manifest.FindSplit(0, "mine");
    EXPECT_TRUE(place.ok()) << place.status();
    return std::pair(manifest.dataset_fingerprint,
                     manifest.splits[*place].identity);
  };
  const auto add = [this](const std::filesystem::path& path) {
    const auto ids = directory_ / "ids.npy";
    std::filesystem::remove(ids);
    EXPECT_TRUE(
        WriteNpy(ids, Array::Adopt(std::vector<int64_t>{3, 1, 20})).ok());
    EXPECT_TRUE(AddSplit(path, {.name = "mine", .type = "", .ids = ids}).ok());
  };
  PartitionOptions options;
  options.method = PartitionMethod::kHash;
  options.parts = 3;
  const auto before = Run(options).path;
  add(before);
  add(dataset);
  const auto after = Run(options).path;
  EXPECT_EQ(identity(before), identity(dataset));
  EXPECT_EQ(identity(after), identity(dataset));
}

// The lookup table of the last partition is shorter than the others.
TEST_F(PartitionTest, AnAddedSplitMayHoldEveryNode) {
  Dataset(RandomGraph(32, 100));
  PartitionOptions options;
  options.parts = 3;
  options.method = PartitionMethod::kRandom;
  const auto path = Run(options).path;
  std::vector<int64_t> all(32);
  std::iota(all.begin(), all.end(), int64_t{0});
  const auto ids = WriteFile("all.npy", Array::Adopt(std::move(all)));
  ASSERT_TRUE(AddSplit(path, {.name = "all", .type = "", .ids = ids}).ok());
  EXPECT_EQ(VerifyStore(path), absl::OkStatus());
}

TEST_F(PartitionTest, CountsTheEdgesThatItCuts) {
  const TestGraph graph = RandomGraph(30, 400);
  Dataset(graph);
  for (const int parts : {1, 2, 3, 8}) {
    PartitionOptions options;
    options.parts = parts;
    options.method = PartitionMethod::kRandom;
    const Partitioned result = Run(options);
    std::vector<int> owner(30);
    const std::vector<int64_t> originals = Originals(*result.store, 0);
    for (size_t id = 0; id < originals.size(); ++id) {
      owner[originals[id]] = result.store->book(0).Owner(id);
    }
    int64_t cut = 0;
    for (const auto& [src, dst] : graph.relations[0].edges) {
      cut += owner[src] != owner[dst] ? 1 : 0;
    }
    EXPECT_EQ(result.report.cut_edges, cut);
    EXPECT_EQ(result.store->manifest().partitioning.cut_edges, cut);
  }
}

TEST_F(PartitionTest, MetisFindsCommunitiesInBalance) {
  Dataset(TwoCommunities(400));
  PartitionOptions options;
  options.parts = 2;
  const Partitioned result = Run(options);
  EXPECT_LE(result.report.node_balance(), 1.05);
  EXPECT_LE(result.report.edge_balance(), 1.05);
  // One edge in 50 crosses by construction.
  EXPECT_LT(result.report.cut_edges, result.report.edges / 25);
  EXPECT_EQ(result.store->manifest().partitioning.cut_edges,
            result.report.cut_edges);
}

TEST_F(PartitionTest, LdgKeepsCapacitiesAndCutsLessThanRandom) {
  Dataset(TwoCommunities(2000));
  PartitionOptions options;
  options.parts = 4;
  options.method = PartitionMethod::kLdg;
  const Partitioned ldg = Run(options);
  EXPECT_LE(ldg.report.node_balance(), 1.051);
  EXPECT_LE(ldg.report.edge_balance(), 1.06);
  options.method = PartitionMethod::kRandom;
  const Partitioned random = Run(options);
  EXPECT_LT(ldg.report.cut_edges, random.report.cut_edges * 8 / 10);
}

TEST_F(PartitionTest, RandomGivesEqualShares) {
  Dataset(RandomGraph(100, 500));
  PartitionOptions options;
  options.parts = 7;
  options.method = PartitionMethod::kRandom;
  for (const PartSummary& part : Run(options).report.parts) {
    EXPECT_THAT(part.nodes, AllOf(::testing::Ge(14), Le(15)));
  }
}

TEST_F(PartitionTest, HashKeepsOwnersWhenTheGraphGrows) {
  PartitionOptions options;
  options.parts = 3;
  options.method = PartitionMethod::kHash;
  std::map<int64_t, int> owners;
  for (const int64_t nodes : {100, 150}) {
    Dataset(RandomGraph(nodes, 400));
    const Partitioned result = Run(options);
    const std::vector<int64_t> originals = Originals(*result.store, 0);
    for (size_t id = 0; id < originals.size(); ++id) {
      const int owner = result.store->book(0).Owner(id);
      const auto [entry, added] = owners.emplace(originals[id], owner);
      EXPECT_EQ(entry->second, owner) << originals[id];
    }
  }
}

TEST_F(PartitionTest, GivenFollowsTheAssignment) {
  Dataset(SmallGraph());
  PartitionOptions options;
  options.parts = 3;
  options.method = PartitionMethod::kGiven;
  options.assignment["node"] = WriteFile(
      "owners.npy", Array::Adopt(std::vector<uint8_t>{2, 0, 2, 2, 0, 0, 2, 2}));
  const Partitioned result = Run(options);
  EXPECT_THAT(result.store->book(0).offsets(), ElementsAre(0, 3, 3, 8));
  std::vector<int64_t> first = Originals(*result.store, 0);
  first.resize(3);
  EXPECT_THAT(first, ::testing::UnorderedElementsAre(1, 4, 5));
}

TEST_F(PartitionTest, GivenRefusesWhatDoesNotFit) {
  Dataset(SmallGraph());
  PartitionOptions options;
  options.parts = 2;
  options.method = PartitionMethod::kGiven;
  EXPECT_THAT(Error(options).message(), HasSubstr("assignment"));

  options.assignment["node"] =
      WriteFile("short.npy", Array::Adopt(std::vector<int64_t>{0, 1}));
  EXPECT_THAT(Error(options).message(),
              AllOf(HasSubstr("short.npy"), HasSubstr("2 values"),
                    HasSubstr("8 nodes")));
  options.assignment["node"] = WriteFile(
      "large.npy", Array::Adopt(std::vector<int64_t>{0, 1, 0, 2, 0, 0, 0, 0}));
  EXPECT_THAT(Error(options).message(),
              AllOf(HasSubstr("large.npy"), HasSubstr("index 3 is 2")));
  options.assignment["node"] =
      WriteFile("negative.npy",
                Array::Adopt(std::vector<int32_t>{0, -1, 0, 0, 0, 0, 0, 0}));
  EXPECT_THAT(Error(options).message(), HasSubstr("index 1 is -1"));
  options.assignment["node"] =
      WriteFile("float.npy", Array::Adopt(std::vector<float>(8, 0)));
  EXPECT_THAT(Error(options).message(), HasSubstr("float32"));
  options.assignment["paper"] = options.assignment["node"];
  EXPECT_THAT(Error(options).message(), HasSubstr("paper"));
}

TEST_F(PartitionTest, DegreeHotnessCountsListsANodeOccursIn) {
  const TestGraph graph = SmallGraph();
  Dataset(graph);
  PartitionOptions options;
  const Partitioned in = Run(options);
  options.directions = StoredDirections::kOut;
  const Partitioned out = Run(options);
  std::map<int64_t, float> sources;
  std::map<int64_t, float> destinations;
  for (const auto& [src, dst] : graph.relations[0].edges) {
    ++sources[src];
    ++destinations[dst];
  }
  for (int64_t row = 0; row < 8; ++row) {
    const NodeColumns& by_in = in.store->partition(0)->nodes[0];
    EXPECT_EQ(by_in.hotness.As<float>()[row],
              sources[by_in.original_id.IntegerAt(row)]);
    const NodeColumns& by_out = out.store->partition(0)->nodes[0];
    EXPECT_EQ(by_out.hotness.As<float>()[row],
              destinations[by_out.original_id.IntegerAt(row)]);
  }
}

TEST_F(PartitionTest, PresampleCountsBatchesThatVisitANode) {
  // A path into node 0; only 0 is a seed, so two hops visit 0, 1 and 2.
  TestGraph graph;
  graph.types.push_back({.count = 5});
  graph.relations.push_back(
      {.edges = {{1, 0}, {2, 1}, {3, 2}, {4, 3}, {4, 3}}});
  graph.splits.push_back({.ids = {0}});
  Dataset(graph);
  PartitionOptions options;
  options.hot = HotnessMethod::kPresample;
  options.hot_job = JobSpec();
  options.hot_job->fanouts = {2, 2};
  const Partitioned result = Run(options);
  // The visited nodes are 1 (of degree 1), 2 (1) and 0 (0), the others 4 (2)
  // and 3 (1).
  EXPECT_THAT(Originals(*result.store, 0), ElementsAre(1, 2, 0, 4, 3));
  const auto hotness = result.store->partition(0)->nodes[0].hotness.As<float>();
  std::vector<float> visits;
  for (const float value : hotness) visits.push_back(std::floor(value));
  EXPECT_THAT(visits, ElementsAre(1, 1, 1, 0, 0));
  // A fraction of the largest degree, below 1, orders nodes visited as often.
  EXPECT_THAT(hotness, ElementsAre(1.46875F, 1.46875F, 1, 0.9375F, 0.46875F));
  EXPECT_EQ(result.store->manifest().partitioning.hot, "presample");
}

// The seeds have no neighbours, so each batch visits only its own seeds.
TEST_F(PartitionTest, PresampleStopsAfterTheBatchesAskedFor) {
  TestGraph graph;
  graph.types = {{.count = 6}};
  graph.relations = {{.edges = {{0, 1}}}};
  graph.splits.push_back({.ids = {2, 3, 4, 5}});
  Dataset(graph);
  for (const uint32_t batches : {1, 3, 9}) {
    PartitionOptions options;
    options.hot = HotnessMethod::kPresample;
    options.hot_batches = batches;
    options.hot_job = JobSpec();
    options.hot_job->fanouts = {1};
    options.hot_job->batch_size = 1;
    const Partitioned result = Run(options);
    float visits = 0;
    for (int part = 0; part < result.store->partition_count(); ++part) {
      for (const float value :
           result.store->partition(part)->nodes[0].hotness.As<float>()) {
        visits += std::floor(value);
      }
    }
    EXPECT_EQ(visits, std::min(batches, 4u)) << batches;
  }
}

TEST_F(PartitionTest, PresampleNamesAMissingSplit) {
  TestGraph graph = SmallGraph();
  graph.splits.clear();
  Dataset(graph);
  PartitionOptions options;
  options.hot = HotnessMethod::kPresample;
  const absl::Status status = Error(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("sampling for hot nodes"), HasSubstr("train")));
}

TEST_F(PartitionTest, ConvertsFeaturesRoundingToNearest) {
  TestGraph graph = SmallGraph();
  graph.types[0].feature = Array::Allocate(DType::kFloat32, {8, 1});
  const std::vector<float> values = {1,     -2.5,  0.1F,        65520,
                                     1e-8F, 3e38F, 1.00390625F, 2049};
  std::copy(values.begin(), values.end(),
            graph.types[0].feature.MutableAs<float>().begin());
  Dataset(graph);
  PartitionOptions options;
  options.feature_dtype = DType::kBFloat16;
  const Partitioned brain = Run(options);
  options.feature_dtype = DType::kFloat16;
  const Partitioned half = Run(options);
  EXPECT_EQ(half.store->schema().node_types[0].feature.dtype, DType::kFloat16);
  // Computed by NumPy: float32 -> float16, and the rounded upper half of
  // float32.
  const std::vector<uint16_t> halves = {0x3c00, 0xc100, 0x2e66, 0x7c00,
                                        0x0000, 0x7c00, 0x3c04, 0x6800};
  const std::vector<uint16_t> brains = {0x3f80, 0xc020, 0x3dcd, 0x4780,
                                        0x322c, 0x7f62, 0x3f80, 0x4500};
  const std::vector<int64_t> originals = Originals(*half.store, 0);
  for (size_t id = 0; id < originals.size(); ++id) {
    const auto at = [id](const Store& store) {
      const Array& feature = store.partition(0)->nodes[0].feature;
      uint16_t bits;
      std::memcpy(&bits, feature.data() + 2 * id, 2);
      return bits;
    };
    EXPECT_EQ(at(*half.store), halves[originals[id]]) << originals[id];
    EXPECT_EQ(at(*brain.store), brains[originals[id]]) << originals[id];
  }
}

TEST_F(PartitionTest, RefusesToConvertIntegerFeatures) {
  TestGraph graph = SmallGraph();
  graph.types[0].feature = Array::Allocate(DType::kUint8, {8, 1});
  Dataset(graph);
  PartitionOptions options;
  options.feature_dtype = DType::kFloat16;
  const absl::Status status = Error(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("uint8"));
}

TEST_F(PartitionTest, RefusesADirectionTheDatasetLacks) {
  TestGraph graph = SmallGraph();
  graph.relations[0].out = false;
  Dataset(graph);
  PartitionOptions options;
  options.directions = StoredDirections::kBoth;
  const absl::Status status = Error(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("out-lists"));
  EXPECT_EQ(ReasonOf(status), "no_lists_in_dataset");
}

TEST_F(PartitionTest, PartitionsADatasetWithOnlyOutLists) {
  TestGraph graph = RichGraph();
  for (auto& relation : graph.relations) {
    relation.in = false;
    relation.out = true;
  }
  Dataset(graph);
  for (const PartitionMethod method :
       {PartitionMethod::kMetis, PartitionMethod::kLdg}) {
    PartitionOptions options;
    options.parts = 2;
    options.method = method;
    options.directions = StoredDirections::kOut;
    const Partitioned result = Run(options);
    ExpectSameLists(graph, *result.store, Direction::kOut);
  }
}

TEST_F(PartitionTest, PartitionsADatasetWithOnlyInLists) {
  TestGraph graph = RichGraph();
  for (auto& relation : graph.relations) {
    relation.in = true;
    relation.out = false;
  }
  Dataset(graph);
  for (const PartitionMethod method :
       {PartitionMethod::kMetis, PartitionMethod::kLdg}) {
    PartitionOptions options;
    options.parts = 2;
    options.method = method;
    options.directions = StoredDirections::kIn;
    const Partitioned result = Run(options);
    ExpectSameLists(graph, *result.store, Direction::kIn);
  }
}

TEST_F(PartitionTest, NamesListsThatEndBeforeTheyBegin) {
  const std::filesystem::path file =
      Dataset(SmallGraph()) /
      ListPath(0, "node__to__node", Direction::kIn, "indptr");
  const int64_t beyond = MapNpy(file)->As<int64_t>().back() + 1;
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(-16, std::ios::end);  // the last number but one
  out.write(reinterpret_cast<const char*>(&beyond), sizeof beyond);
  out.close();
  for (const PartitionMethod method :
       {PartitionMethod::kRandom, PartitionMethod::kMetis,
        PartitionMethod::kLdg}) {
    PartitionOptions options;
    options.parts = 2;
    options.method = method;
    const absl::Status status = Error(options);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("the indptr.npy beside it does not increase from 0"));
  }
}

TEST_F(PartitionTest, RefusesAStoreAndAnExistingTarget) {
  Dataset(SmallGraph());
  const Partitioned store = Run({});
  const auto again =
      PartitionDataset(store.path, directory_ / "again", {}).status();
  EXPECT_EQ(again.code(), absl::StatusCode::kFailedPrecondition);
  const auto there =
      PartitionDataset(directory_ / "dataset", store.path, {}).status();
  EXPECT_EQ(there.code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(PartitionTest, RefusesPartsOutOfRange) {
  Dataset(SmallGraph());
  PartitionOptions options;
  for (const int parts : {0, -1, 65536}) {
    options.parts = parts;
    EXPECT_THAT(Error(options).message(), HasSubstr("parts"));
  }
}

TEST_F(PartitionTest, ErrorsNameTheOptionItsValueAndTheLimit) {
  const std::string dataset = Dataset(RichGraph()).string();
  const auto npy = [this](const std::string& name, const Array& array) {
    return WriteFile(name, array);
  };
  const std::filesystem::path papers =
      npy("papers.npy", Array::Adopt(std::vector<int64_t>(7, 1)));
  const std::filesystem::path zeros =
      npy("zeros.npy", Array::Adopt(std::vector<int64_t>(5, 0)));
  const std::filesystem::path matrix =
      npy("matrix.npy", Array::Allocate(DType::kInt64, {5, 1}));
  const std::filesystem::path few =
      npy("few.npy", Array::Adopt(std::vector<int64_t>(4, 0)));
  const std::filesystem::path high =
      npy("high.npy", Array::Adopt(std::vector<int64_t>{0, 1, 1, 2, 0}));
  using Files = std::map<std::string, std::filesystem::path>;
  struct Case {
    int parts;
    PartitionMethod method;
    Files files;
    std::string message;
  };
  const auto random = PartitionMethod::kRandom;
  const auto given = PartitionMethod::kGiven;
  const std::vector<Case> cases = {
      {0, random, {}, "parts 0 is out of range: 1 to 65535"},
      {65536, random, {}, "parts 65536 is out of range: 1 to 65535"},
      // 5 authors and 7 papers.
      {65535,
       random,
       {},
       "parts 65535: " + dataset +
           " has only 12 nodes\nask for at most as many partitions as nodes"},
      {13,
       random,
       {},
       "parts 13: " + dataset +
           " has only 12 nodes\nask for at most as many partitions as nodes"},
      {2, given, {}, "method given needs assignment"},
      {2, random, {{"author", zeros}}, "assignment needs method given"},
      {2,
       given,
       {{"paper", papers}},
       "assignment: no file for node type \"author\"; give one as "
       "author=F.npy"},
      {2,
       given,
       {{"author", zeros}},
       "assignment: no file for node type \"paper\"; give one as "
       "paper=F.npy"},
      {2,
       given,
       {{"author", zeros}, {"editor", zeros}, {"paper", papers}},
       "assignment editor=" + zeros.string() +
           ": no node type 'editor'; the node types are 'author', 'paper'"},
      {2,
       given,
       {{"author", matrix}, {"paper", papers}},
       matrix.string() + ": an assignment has one dimension, but this has 2"},
      {2,
       given,
       {{"author", few}, {"paper", papers}},
       few.string() + ": 4 values, but type \"author\" has 5 nodes"},
      {2,
       given,
       {{"author", high}, {"paper", papers}},
       high.string() + ": index 3 is 2, but partitions are 0 to 1"},
      {1,
       given,
       {{"author", zeros}, {"paper", papers}},
       papers.string() + ": index 0 is 1, but partitions are 0 to 0"},
  };
  for (const Case& example : cases) {
    PartitionOptions options;
    options.parts = example.parts;
    options.method = example.method;
    options.assignment = example.files;
    const absl::Status status = Error(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), example.message);
  }
  PartitionOptions options;
  options.method = given;
  EXPECT_EQ(ReasonOf(Error(options)), "no_assignment");
}

TEST_F(PartitionTest, RefusalsOfDatasetsNameThem) {
  const std::string dataset = Dataset(RichGraph()).string();
  PartitionOptions options;
  options.directions = StoredDirections::kOut;
  EXPECT_EQ(Error(options).message(),
            dataset + ": no out-lists of relation author__knows__author");
  options.directions = StoredDirections::kBoth;
  EXPECT_EQ(Error(options).message(),
            dataset + ": no out-lists of relation author__knows__author");
  TestGraph graph = RichGraph();
  graph.relations[1].in = false;
  Dataset(graph);
  options.directions = StoredDirections::kIn;
  EXPECT_EQ(Error(options).message(),
            dataset + ": no in-lists of relation paper__cites__paper");

  Dataset(SmallGraph());
  // A store of one partition is no dataset either.
  const Partitioned store = Run({});
  EXPECT_EQ(
      PartitionDataset(store.path, directory_ / "again", {}).status().message(),
      store.path.string() +
          " is already partitioned\npartition the dataset that it was made "
          "from");
}

TEST(CheckFeatureCastTest, OnlyFloatsCanBeConverted) {
  for (const auto& [from, to] :
       {std::pair(DType::kUint8, DType::kNone),
        std::pair(DType::kUint8, DType::kUint8),
        std::pair(DType::kNone, DType::kFloat16),
        std::pair(DType::kFloat16, DType::kFloat32),
        std::pair(DType::kFloat32, DType::kBFloat16)}) {
    EXPECT_EQ(CheckFeatureCast("node", from, to), absl::OkStatus());
  }
  const absl::Status status =
      CheckFeatureCast("paper", DType::kUint8, DType::kFloat16);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "feature_dtype float16: the features of \"paper\" are uint8; only "
            "floats can be converted\nleave it out, or import the features as "
            "float32");
}

// More rows than are converted at once. The values have 8 significant bits, so
// bfloat16 holds them exactly: its bits are the upper half of float32's.
TEST_F(PartitionTest, ConvertsManyRowsOfFeatures) {
  constexpr int64_t kNodes = 1000;
  constexpr int64_t kDims = 3;
  TestGraph graph;
  graph.types = {
      {.count = kNodes,
       .feature = Array::Allocate(DType::kFloat32, {kNodes, kDims})}};
  const auto values = graph.types[0].feature.MutableAs<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 251);
  }
  graph.relations = {{.edges = {{0, 1}}}};
  Dataset(graph);
  PartitionOptions options;
  options.parts = 2;
  options.method = PartitionMethod::kRandom;
  options.feature_dtype = DType::kBFloat16;
  const Partitioned result = Run(options);
  for (int part = 0; part < 2; ++part) {
    const NodeColumns& nodes = result.store->partition(part)->nodes[0];
    ASSERT_EQ(nodes.feature.rows(), 500);
    for (int64_t row = 0; row < nodes.feature.rows(); ++row) {
      const int64_t original = nodes.original_id.IntegerAt(row);
      for (int64_t j = 0; j < kDims; ++j) {
        uint16_t stored;
        std::memcpy(&stored, nodes.feature.data() + 2 * (row * kDims + j), 2);
        const auto wanted = static_cast<float>((original * kDims + j) % 251);
        uint32_t bits;
        std::memcpy(&bits, &wanted, 4);
        ASSERT_EQ(stored, bits >> 16) << original << " " << j;
      }
    }
  }
}

TEST(PartitionReportTest, BalanceIsTheLargestPartOverTheAverage) {
  PartitionReport report;
  report.parts = {{.nodes = 1, .edges = 6}, {.nodes = 3, .edges = 2}};
  report.nodes = 4;
  report.edges = 8;
  EXPECT_EQ(report.node_balance(), 1.5);
  EXPECT_EQ(report.edge_balance(), 1.5);
  report.parts = {{.nodes = 5}, {.nodes = 1, .edges = 8}, {}};
  report.nodes = 6;
  EXPECT_EQ(report.node_balance(), 2.5);
  EXPECT_EQ(report.edge_balance(), 3);
}

TEST_F(PartitionTest, TheManifestSaysHowAStoreWasMade) {
  Dataset(SmallGraph());
  for (const auto& [method, name] :
       {std::pair(PartitionMethod::kMetis, "metis"),
        std::pair(PartitionMethod::kLdg, "ldg"),
        std::pair(PartitionMethod::kRandom, "random"),
        std::pair(PartitionMethod::kHash, "hash")}) {
    PartitionOptions options;
    options.parts = 2;
    options.method = method;
    options.seed = 77;
    const PartitioningInfo made = Run(options).store->manifest().partitioning;
    EXPECT_EQ(made.method, name);
    EXPECT_EQ(made.seed, 77);
    EXPECT_EQ(made.hot, "degree");
  }
}

TEST_F(PartitionTest, NeighborsOriginalIdsAreOptional) {
  Dataset(SmallGraph());
  for (const bool wanted : {true, false}) {
    PartitionOptions options;
    options.neighbor_original_ids = wanted;
    const Partitioned result = Run(options);
    EXPECT_EQ(result.store->manifest().neighbor_original_ids, wanted);
    const NeighborLists& lists = result.store->partition(0)->edges[0].in;
    ASSERT_EQ(lists.neighbor_original_id.present(), wanted);
    if (!wanted) continue;
    const std::vector<int64_t> originals = Originals(*result.store, 0);
    for (int64_t i = 0; i < lists.indices.rows(); ++i) {
      EXPECT_EQ(lists.neighbor_original_id.IntegerAt(i),
                originals[lists.indices.IntegerAt(i)]);
    }
  }
}

TEST_F(PartitionTest, CountsEdgesOnceInWhicheverDirection) {
  const TestGraph graph = RandomGraph(30, 400);
  Dataset(graph);
  for (const StoredDirections directions :
       {StoredDirections::kIn, StoredDirections::kOut,
        StoredDirections::kBoth}) {
    PartitionOptions options;
    options.parts = 3;
    options.method = PartitionMethod::kRandom;
    options.directions = directions;
    const Partitioned result = Run(options);
    std::vector<int> owner(30);
    const std::vector<int64_t> originals = Originals(*result.store, 0);
    for (size_t id = 0; id < originals.size(); ++id) {
      owner[originals[id]] = result.store->book(0).Owner(id);
    }
    std::vector<int64_t> edges(3, 0);
    std::vector<int64_t> cut(3, 0);
    for (const auto& [src, dst] : graph.relations[0].edges) {
      const int part = owner[directions == StoredDirections::kOut ? src : dst];
      ++edges[part];
      cut[part] += owner[src] != owner[dst];
    }
    EXPECT_EQ(result.report.nodes, 30);
    EXPECT_EQ(result.report.edges, 400);
    for (int part = 0; part < 3; ++part) {
      EXPECT_EQ(result.report.parts[part].nodes, 10);
      EXPECT_EQ(result.report.parts[part].edges, edges[part]);
      EXPECT_EQ(result.report.parts[part].cut_edges, cut[part]);
    }
  }
}

// Overwrites a number of an array of a dataset.
template <typename T>
void SetNumber(const std::filesystem::path& file, int64_t index, T value) {
  const Array array = *MapNpy(file);
  const auto header = static_cast<int64_t>(std::filesystem::file_size(file)) -
                      array.rows() * static_cast<int64_t>(sizeof(T));
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(header + index * static_cast<int64_t>(sizeof(T)));
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

TEST_F(PartitionTest, NamesNeighborsThatDoNotExist) {
  for (const PartitionMethod method :
       {PartitionMethod::kRandom, PartitionMethod::kMetis,
        PartitionMethod::kLdg}) {
    const auto file = Dataset(SmallGraph()) /
                      ListPath(0, "node__to__node", Direction::kIn, "indices");
    SetNumber<uint32_t>(file, 2, 8);
    PartitionOptions options;
    options.parts = 2;
    options.method = method;
    const absl::Status status = Error(options);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(status.message(),
              file.string() + ": entry 2 is 8, but there are 8 nodes");
  }
  // LDG also follows lists that it does not store.
  const auto out = Dataset(SmallGraph()) /
                   ListPath(0, "node__to__node", Direction::kOut, "indices");
  SetNumber<uint32_t>(out, 3, 9);
  PartitionOptions options;
  options.parts = 2;
  options.method = PartitionMethod::kLdg;
  EXPECT_EQ(Error(options).message(),
            out.string() + ": entry 3 is 9, but there are 8 nodes");
}

// Author 0 wrote papers 0 and 2, of which the in-edges are 0 to 2 and 4.
TEST_F(PartitionTest, NamesSlotsThatAreNotOfTheNeighbor) {
  TestGraph graph = RichGraph();
  graph.relations.resize(1);
  graph.relations[0].edges[0].first = 0;
  for (const auto& [entry, slot, node] :
       {std::tuple(0, -1, 0), std::tuple(0, 3, 0), std::tuple(1, 3, 2),
        std::tuple(1, 5, 2)}) {
    const std::filesystem::path dataset = Dataset(graph);
    const auto path = [&](const char* column) {
      return dataset /
             ListPath(0, "author__writes__paper", Direction::kOut, column);
    };
    SetNumber<int64_t>(path("slot"), entry, slot);
    PartitionOptions options;
    options.directions = StoredDirections::kOut;
    const absl::Status status = Error(options);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(status.message(),
              StrCat(path("indices").string(), ": the slot.npy beside it has ",
                     slot, " at entry ", entry,
                     ", which is not an in-edge of node ", node));
  }
}

TEST_F(PartitionTest, NamesSeedsThatDoNotExist) {
  for (const int64_t seed : {-1, 8}) {
    const std::filesystem::path file =
        Dataset(SmallGraph()) / SplitPath("node", "train", "original_id");
    SetNumber<int64_t>(file, 1, seed);
    const absl::Status status = Error({});
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(status.message(), StrCat(file.string(), ": index 1 is ", seed,
                                       ", but there are 8 nodes"));
  }
}

TEST_F(PartitionTest, SelfLoopsAloneGiveEqualShares) {
  TestGraph graph;
  graph.types = {{.count = 10}};
  graph.relations = {{.edges = {{0, 0}, {1, 1}, {1, 1}}}};
  Dataset(graph);
  PartitionOptions options;
  options.parts = 2;
  const Partitioned result = Run(options);
  EXPECT_EQ(result.report.parts[0].nodes, 5);
  EXPECT_EQ(result.report.parts[1].nodes, 5);
}

TEST_F(PartitionTest, KeepsTheColumnsOfPairs) {
  TestGraph graph = RichGraph();
  const auto longs = [](std::vector<int64_t> values) {
    return Array::Adopt(std::move(values));
  };
  Array negative = Array::Allocate(DType::kInt64, {3, 2});
  const std::vector<int64_t> negatives = {6, 5, 4, 3, 2, 1};
  std::copy(negatives.begin(), negatives.end(),
            negative.MutableAs<int64_t>().begin());
  graph.edge_splits = {
      {.relation = 0,
       .name = "pairs",
       .src = longs({4, 0, 2}),
       .dst = longs({6, 2, 3}),
       .edge_id = longs({3, 4, 2}),
       .time = longs({7, 8, 9}),
       .edge_type = Array::Adopt(std::vector<int32_t>{2, 1, 0}),
       .label = Array::Adopt(std::vector<float>{0.5F, 1, 2}),
       .negative = negative}};
  Dataset(graph);
  PartitionOptions options;
  options.parts = 3;
  options.method = PartitionMethod::kHash;
  const Partitioned result = Run(options);
  const Store& store = *result.store;
  const std::vector<int64_t> authors = Originals(store, 0);
  const std::vector<int64_t> papers = Originals(store, 1);
  const EdgeSplit& split = store.edge_split(0);
  std::vector<int64_t> counts(3, 0);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(authors.at(split.src.IntegerAt(i)),
              graph.edge_splits[0].src.IntegerAt(i));
    EXPECT_EQ(papers.at(split.dst.IntegerAt(i)),
              graph.edge_splits[0].dst.IntegerAt(i));
    ++counts[store.book(1).Owner(split.dst.IntegerAt(i))];
    for (int64_t j = 2 * i; j < 2 * i + 2; ++j) {
      EXPECT_EQ(papers.at(split.negative.As<uint32_t>()[j]), negatives[j]);
    }
  }
  EXPECT_EQ(store.manifest().edge_splits[0].part_counts, counts);
  EXPECT_THAT(split.src_original_id.As<int64_t>(), ElementsAre(4, 0, 2));
  EXPECT_THAT(split.dst_original_id.As<int64_t>(), ElementsAre(6, 2, 3));
  EXPECT_THAT(split.edge_id.As<int64_t>(), ElementsAre(3, 4, 2));
  EXPECT_THAT(split.time.As<int64_t>(), ElementsAre(7, 8, 9));
  EXPECT_THAT(split.edge_type.As<int32_t>(), ElementsAre(2, 1, 0));
  EXPECT_THAT(split.label.As<float>(), ElementsAre(0.5F, 1, 2));
  EXPECT_THAT(split.negative_original_id.As<int64_t>(),
              ::testing::ElementsAreArray(negatives));
}

TEST_F(PartitionTest, NamesPairsWhoseNodesDoNotExist) {
  TestGraph graph = SmallGraph();
  EdgeSplitColumns& pairs = graph.edge_splits.emplace_back();
  pairs.name = "pairs";
  pairs.src = Array::Adopt(std::vector<int64_t>{0, 1});
  pairs.dst = Array::Adopt(std::vector<int64_t>{2, 3});
  const std::filesystem::path dataset = Dataset(graph);
  SetNumber<int64_t>(
      dataset / SplitPath("node__to__node", "pairs", "dst_original_id"), 1, 8);
  const absl::Status status = Error({});
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(status.message(),
            dataset.string() +
                ": split \"pairs\": destination 1 is node 8, but node type "
                "node has 8 nodes");
}

// A path out of node 0, the only seed, which three hops follow to node 3.
TEST_F(PartitionTest, PresamplesThreeHopsOfTrainByDefault) {
  TestGraph graph;
  graph.types = {{.count = 6}};
  graph.relations = {{.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}}};
  graph.splits.push_back({.ids = {0}});
  Dataset(graph);
  PartitionOptions options;
  options.hot = HotnessMethod::kPresample;
  for (const auto& [directions, wanted] :
       {std::pair(StoredDirections::kOut, 4),
        std::pair(StoredDirections::kIn, 1),
        std::pair(StoredDirections::kBoth, 1)}) {
    options.directions = directions;
    const Partitioned result = Run(options);
    const Array& hotness = result.store->partition(0)->nodes[0].hotness;
    const std::vector<int64_t> originals = Originals(*result.store, 0);
    for (int64_t id = 0; id < 6; ++id) {
      EXPECT_EQ(std::floor(hotness.As<float>()[id]),
                originals[id] < wanted ? 1 : 0);
    }
  }
}

TEST(AssignTest, TypesAndSeedsGiveOtherAssignments) {
  Schema schema;
  schema.node_types = {{.name = "a", .count = 64}, {.name = "b", .count = 64}};
  const uint64_t seed = 5;
  const uint64_t other = seed + (uint64_t{1} << 32);
  const Assignment random = AssignRandom(schema, 4, seed);
  EXPECT_NE(random[0], random[1]);
  EXPECT_NE(random, AssignRandom(schema, 4, other));
  const Assignment hash = AssignHash(schema, 4, seed);
  EXPECT_EQ(hash[0], hash[1]);
  EXPECT_NE(hash, AssignHash(schema, 4, other));
  for (const Assignment& assignment : {random, hash}) {
    EXPECT_THAT(assignment[0], Each(Le(3)));
    EXPECT_THAT(assignment[0], ::testing::Contains(3));
    EXPECT_THAT(assignment[0], ::testing::Contains(0));
  }
}

}  // namespace
}  // namespace millrace
