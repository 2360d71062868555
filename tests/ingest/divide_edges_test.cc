// SPDX-License-Identifier: Apache-2.0
// Splits of edges made by an import, compared with a plain computation.
#include "common/ingest/divide_edges.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/file/npy.h"
#include "common/graph/store.h"
#include "common/graph/verify.h"
#include "common/ingest/formats/npy_graph.h"
#include "common/ingest/importer.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

constexpr std::array<const char*, 3> kNames = {"train", "valid", "test"};

struct Edge {
  int64_t src, dst, id;
  friend auto operator<=>(const Edge&, const Edge&) = default;
};
using Edges = std::vector<Edge>;
using Pair = std::pair<int64_t, int64_t>;

Pair Unordered(const Edge& edge) { return std::minmax(edge.src, edge.dst); }

// Half of the edges are between few nodes, so that pairs repeat.
Edges RandomEdges(int64_t nodes, int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Edges edges;
  for (int64_t id = 0; id < count; ++id) {
    const int64_t limit = id % 2 == 0 ? nodes : 6;
    const auto src = static_cast<int64_t>(random() % limit);
    edges.push_back({src, static_cast<int64_t>(random() % limit), id});
  }
  return edges;
}

// Every pair once, in one direction, in an order given by `seed`.
Edges AllPairs(int64_t nodes, uint32_t seed) {
  Edges edges;
  for (int64_t a = 0; a < nodes; ++a) {
    for (int64_t b = a + 1; b < nodes; ++b) edges.push_back({a, b, 0});
  }
  std::shuffle(edges.begin(), edges.end(), std::mt19937(seed));
  for (size_t i = 0; i < edges.size(); ++i) {
    edges[i].id = static_cast<int64_t>(i);
  }
  return edges;
}

// The edges that are seeds, as the header defines them.
Edges Seeds(const Edges& edges, const ImportOptions& options) {
  Edges seeds;
  std::set<Pair> seen;
  for (const Edge& edge : edges) {
    if (edge.src == edge.dst && options.self_loops != SelfLoops::kKeep) {
      continue;
    }
    const Pair pair =
        options.undirected ? Unordered(edge) : Pair(edge.src, edge.dst);
    if (options.coalesce && !seen.insert(pair).second) continue;
    seeds.push_back(edge);
  }
  return seeds;
}

// The lists of a relation as edges.
std::multiset<Edge> GraphOf(const Store& store, size_t relation) {
  const NeighborLists& lists = store.partition(0)->edges[relation].in;
  const auto indptr = lists.indptr.As<int64_t>();
  std::multiset<Edge> edges;
  for (size_t node = 0; node + 1 < indptr.size(); ++node) {
    for (int64_t i = indptr[node]; i < indptr[node + 1]; ++i) {
      edges.insert({lists.indices.IntegerAt(i), static_cast<int64_t>(node),
                    lists.edge_id.As<int64_t>()[i]});
    }
  }
  return edges;
}

// The graph that an import with these options makes from `edges`, of which
// there were `count` before some were held out.
std::multiset<Edge> PlainGraph(Edges edges, int64_t nodes, int64_t count,
                               const ImportOptions& options) {
  const auto loop = [](const Edge& edge) { return edge.src == edge.dst; };
  if (options.self_loops == SelfLoops::kRemove) std::erase_if(edges, loop);
  const size_t forward = edges.size();
  for (size_t i = 0; options.undirected && i < forward; ++i) {
    if (loop(edges[i])) continue;
    edges.push_back({edges[i].dst, edges[i].src, edges[i].id + count});
  }
  for (int64_t node = 0; node < nodes; ++node) {
    if (options.self_loops != SelfLoops::kAdd) break;
    const bool has = std::any_of(
        edges.begin(), edges.end(),
        [&](const Edge& edge) { return loop(edge) && edge.src == node; });
    const int64_t base = options.undirected ? 2 * count : count;
    if (!has) edges.push_back({node, node, base + node});
  }
  std::multiset<Edge> graph;
  std::set<Pair> seen;
  for (const Edge& edge : edges) {
    if (options.coalesce && !seen.insert({edge.src, edge.dst}).second) continue;
    graph.insert(edge);
  }
  return graph;
}

std::map<std::string, std::string> PartFiles(
    const std::filesystem::path& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root / "part-00000")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[std::filesystem::relative(entry.path(), root)] =
        std::string(std::istreambuf_iterator<char>(file), {});
  }
  return files;
}

class DivideEdgesTest : public testing::DirectoryTest {
 protected:
  std::string Save(const char* name, std::vector<int64_t> values,
                   std::vector<int64_t> shape) {
    std::filesystem::remove(directory_ / name);
    const auto written = WriteNpy(
        directory_ / name, Array::Adopt(std::move(values), std::move(shape)));
    EXPECT_TRUE(written.ok()) << written.status();
    return (directory_ / name).string();
  }

  NpyInput Input(const Edges& edges, int64_t nodes) {
    std::vector<int64_t> pairs;
    for (const Edge& edge : edges) {
      pairs.insert(pairs.end(), {edge.src, edge.dst});
    }
    NpyInput input;
    const auto count = static_cast<int64_t>(edges.size());
    input.edges = {{"", Save("edges.npy", std::move(pairs), {count, 2})}};
    input.node_counts[""] = nodes;
    return input;
  }

  absl::StatusOr<std::unique_ptr<Store>> Import(const NpyInput& input,
                                                const ImportOptions& options,
                                                const char* name = "out") {
    std::filesystem::remove_all(directory_ / name);
    const auto graph = OpenNpy(input);
    if (!graph.ok()) return graph.status();
    const auto manifest = ImportGraph(*graph, options, directory_ / name);
    if (!manifest.ok()) return manifest.status();
    return Store::Open(directory_ / name);
  }

  void ExpectRefusal(const NpyInput& input, const ImportOptions& options,
                     const char* what) {
    const auto store = Import(input, options);
    ASSERT_FALSE(store.ok()) << what;
    EXPECT_THAT(std::string(store.status().message()), HasSubstr(what));
  }
};

// The splits of a dataset, in the order of kNames.
std::array<Edges, 3> SplitsOf(const Store& store) {
  std::array<Edges, 3> splits;
  EXPECT_EQ(store.manifest().edge_splits.size(), 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(store.manifest().edge_splits[i].name, kNames[i]);
    const EdgeSplit& split = store.edge_split(i);
    for (int64_t row = 0; row < split.src.rows(); ++row) {
      splits[i].push_back({split.src_original_id.As<int64_t>()[row],
                           split.dst_original_id.As<int64_t>()[row],
                           split.edge_id.As<int64_t>()[row]});
    }
  }
  return splits;
}

// The split of each unordered pair of the seeds (3: none). Checks that each
// pair is in only one split, and that the boundaries are right.
std::map<Pair, int> CheckedSides(const std::array<Edges, 3>& splits,
                                 const Edges& seeds,
                                 const std::vector<double>& fractions) {
  std::map<Edge, int> share_of;
  for (const Edge& seed : seeds) share_of[seed] = 3;
  size_t most = 0, done = 0;
  std::map<Pair, size_t> repeats;
  for (const Edge& seed : seeds) {
    most = std::max(most, ++repeats[Unordered(seed)]);
  }
  double share = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(std::is_sorted(
        splits[i].begin(), splits[i].end(),
        [](const Edge& a, const Edge& b) { return a.id < b.id; }));
    for (const Edge& seed : splits[i]) {
      EXPECT_TRUE(share_of.contains(seed)) << seed.id;
      EXPECT_EQ(share_of[seed], 3) << "in two splits: " << seed.id;
      share_of[seed] = i;
    }
    share += fractions[i];
    done += splits[i].size();
    const auto cut = static_cast<size_t>(
        std::lround(share * static_cast<double>(seeds.size())));
    EXPECT_GE(done, cut);
    EXPECT_LT(done, cut + most);
  }
  std::map<Pair, int> sides;
  for (const auto& [seed, side] : share_of) {
    const auto [found, added] = sides.emplace(Unordered(seed), side);
    EXPECT_EQ(found->second, side) << seed.src << " - " << seed.dst;
  }
  return sides;
}

TEST_F(DivideEdgesTest, LeavesHeldOutPairsOutOfTheGraph) {
  constexpr int64_t kNodes = 40, kEdges = 300;
  const Edges user = RandomEdges(kNodes, kEdges, 5);
  const NpyInput input = Input(user, kNodes);
  for (int bits = 0; bits < 24; ++bits) {
    SCOPED_TRACE(bits);
    ImportOptions options;
    options.undirected = (bits & 1) != 0;
    options.coalesce = (bits & 2) != 0;
    options.add_reverse = (bits & 4) != 0;
    options.self_loops = static_cast<SelfLoops>(bits / 8);
    options.edge_split_fractions = {0.5, 0.2, 0.2};
    const auto store = Import(input, options);
    ASSERT_TRUE(store.ok()) << store.status();
    const std::array<Edges, 3> splits = SplitsOf(**store);
    const std::map<Pair, int> sides = CheckedSides(
        splits, Seeds(user, options), options.edge_split_fractions);
    Edges kept = user;
    std::erase_if(kept, [&](const Edge& edge) {
      const auto side = sides.find(Unordered(edge));
      return side != sides.end() && (side->second == 1 || side->second == 2);
    });
    EXPECT_LT(kept.size(), user.size());
    EXPECT_EQ(GraphOf(**store, 0), PlainGraph(kept, kNodes, kEdges, options));
    if (!options.add_reverse) continue;
    Edges reverses;
    for (const Edge& edge : kept) {
      if (edge.src != edge.dst) {
        reverses.push_back({edge.dst, edge.src, edge.id});
      }
    }
    ImportOptions reversed = options;
    reversed.undirected = false;
    EXPECT_EQ(GraphOf(**store, 1),
              PlainGraph(reverses, kNodes, kEdges, reversed));
  }
  EXPECT_TRUE(VerifyStore(directory_ / "out").ok());
}

TEST_F(DivideEdgesTest, CutsDistinctPairsExactly) {
  const Edges user = AllPairs(45, 1);  // 990
  ImportOptions options;
  options.edge_split_fractions = {0.8, 0.1, 0.1};
  options.undirected = true;
  const auto store = Import(Input(user, 45), options);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::array<Edges, 3> splits = SplitsOf(**store);
  EXPECT_EQ(splits[0].size(), 792);
  EXPECT_EQ(splits[1].size(), 99);
  EXPECT_EQ(splits[2].size(), 99);
  EXPECT_EQ((*store)->schema().relations[0].edge_count, 2 * 792);
}

TEST_F(DivideEdgesTest, DependsOnlyOnPairsAndSeed) {
  std::vector<std::set<Pair>> tests;
  for (const auto& [order, seed] : {std::pair(1, 1), {2, 1}, {1, 2}}) {
    const Edges user = AllPairs(45, static_cast<uint32_t>(order));
    ImportOptions options;
    options.edge_split_fractions = {0.7, 0.1, 0.2};
    options.split_seed = static_cast<uint64_t>(seed);
    const auto store = Import(Input(user, 45), options);
    ASSERT_TRUE(store.ok()) << store.status();
    std::set<Pair>& pairs = tests.emplace_back();
    const std::array<Edges, 3> splits = SplitsOf(**store);
    for (const Edge& edge : splits[2]) pairs.insert(Unordered(edge));
  }
  EXPECT_EQ(tests[0], tests[1]);
  EXPECT_NE(tests[0], tests[2]);
}

TEST_F(DivideEdgesTest, DividesTimesInOrder) {
  const Edges user = RandomEdges(40, 300, 7);
  NpyInput input = Input(user, 40);
  std::vector<int64_t> times;
  for (int64_t i = 0; i < 300; ++i) times.push_back((i * 37 + 11) % 60 - 30);
  input.edge_times[""] = Save("times.npy", times, {300});
  for (const bool coalesce : {false, true}) {
    ImportOptions options;
    options.coalesce = coalesce;
    options.undirected = true;
    options.edge_split_by = EdgeSplitBy::kTime;
    ASSERT_TRUE(Import(input, options, "whole").ok());
    options.edge_split_fractions = {0.6, 0.13, 0.2};
    const auto store = Import(input, options);
    ASSERT_TRUE(store.ok()) << store.status();
    // No edge is held out.
    EXPECT_EQ(PartFiles(directory_ / "out"), PartFiles(directory_ / "whole"));
    const Edges seeds = Seeds(user, options);
    std::vector<int64_t> sorted;
    for (const Edge& seed : seeds) sorted.push_back(times[seed.id]);
    std::sort(sorted.begin(), sorted.end());
    std::array<Edges, 3> expected;
    for (const Edge& seed : seeds) {
      double share = 0;
      for (int i = 0; i < 3; ++i) {
        share += options.edge_split_fractions[i];
        const auto cut = static_cast<size_t>(
            std::lround(share * static_cast<double>(seeds.size())));
        if (times[seed.id] > sorted[cut - 1]) continue;
        expected[i].push_back(seed);
        break;
      }
    }
    EXPECT_EQ(SplitsOf(**store), expected);
    const EdgeSplit& train = (*store)->edge_split(0);
    for (size_t i = 0; i < expected[0].size(); ++i) {
      EXPECT_EQ(train.time.As<int64_t>()[i], times[expected[0][i].id]);
    }
  }
}

TEST_F(DivideEdgesTest, OrdersPairsBetweenTwoTypes) {
  std::vector<int64_t> pairs;
  for (int64_t a = 0; a < 30; ++a) {
    for (int64_t b = 0; b < 30; ++b) pairs.insert(pairs.end(), {a, b});
  }
  const std::string file = Save("edges.npy", std::move(pairs), {900, 2});
  NpyInput input;
  input.edges = {{"a__to__a", file}, {"a__to__b", file}};
  ImportOptions options;
  options.undirected = true;
  options.coalesce = true;
  options.edge_split_fractions = {0.8, 0, 0.2};
  options.edge_split_type = "a__to__b";
  const auto store = Import(input, options);
  ASSERT_TRUE(store.ok()) << store.status();
  const std::array<Edges, 3> splits = SplitsOf(**store);
  EXPECT_EQ(splits[0].size(), 720);
  EXPECT_EQ(splits[1].size(), 0);
  EXPECT_EQ(splits[2].size(), 180);
  EXPECT_EQ((*store)->manifest().edge_splits[0].relation, 1);
  EXPECT_EQ((*store)->schema().relations[0].edge_count, 900);
  EXPECT_EQ((*store)->schema().relations[1].edge_count, 720);
  std::set<Pair> test;
  int together = 0;
  for (const Edge& edge : splits[2]) {
    together += test.contains({edge.dst, edge.src}) ? 1 : 0;
    test.insert({edge.src, edge.dst});
  }
  // By chance, around 17 pairs (870 / 2 * 0.2 * 0.2) are in the split in both
  // directions; if the two directions were divided together, about 90 would be.
  EXPECT_LT(together, 50);
}

TEST_F(DivideEdgesTest, RefusesInvalidOptions) {
  NpyInput input = Input(AllPairs(5, 1), 5);
  ImportOptions options;
  options.edge_split_fractions = {0.8, 0.3, 0.1};
  ExpectRefusal(input, options, "edge_split_fractions 0.8,0.3,0.1");
  options.edge_split_fractions = {0.8, 0.1, 0.1};
  options.edge_split_type = "node__of__node";
  ExpectRefusal(input, options,
                "edge_split_type node__of__node: there is no such relation; "
                "the relations are node__to__node");
  options.edge_split_type.clear();
  options.edge_split_by = EdgeSplitBy::kTime;
  ExpectRefusal(
      input, options,
      "edge_split_by time: the edges of node__to__node have no times "
      "in this input\ngive edge times, or divide the edges at random");
  options.edge_split_by = EdgeSplitBy::kRandom;
  input.train["node__to__node"] = Save("ids.npy", {0, 1}, {2});
  ExpectRefusal(input, options,
                "edge_split_fractions: node__to__node already has splits in "
                "this input\nleave them out");
  input.train.clear();
  const auto file = input.edges[0].second;
  input.edges = {{"a__to__a", file}, {"b__to__b", file}};
  input.node_counts = {{"a", 5}, {"b", 5}};
  ExpectRefusal(input, options,
                "edge_split_type is needed: the relations are a__to__a, "
                "b__to__b");
  options.edge_split_type = "a__to__b";
  ExpectRefusal(input, options, "the relations are a__to__a, b__to__b");
}

}  // namespace
}  // namespace millrace
