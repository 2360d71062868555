// SPDX-License-Identifier: Apache-2.0
// Lists read without some of their entries, however many these are.
#include "common/sample/excluded_edges.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/sample/draw/draw.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::TestGraph;

// Node 0 has `edges` edges; edge i comes from node i mod `leaves` + 1 at time i
// mod 7.
std::shared_ptr<const Store> Star(int64_t edges, int64_t leaves) {
  TestGraph graph;
  graph.types = {{.count = leaves + 1}};
  graph.relations = {{.out = false}};
  for (int64_t i = 0; i < edges; ++i) {
    graph.relations[0].edges.emplace_back(i % leaves + 1, 0);
    graph.relations[0].time.push_back(i % 7);
  }
  return testing::TestStore(graph).Open();
}

constexpr uint64_t kPopular = 0;

Frontier HubWithout(const ExcludedEdges& excluded) {
  return {.relation = 0,
          .fanout = kAllNeighbors,
          .ids = std::span(&kPopular, 1),
          .excluded = &excluded};
}

// All picks of the hub, with edge ids.
Picks PicksWithout(const Store& store, const ExcludedEdges& excluded) {
  Picks picks;
  const absl::Status status =
      DrawNeighbors(store, 0, {.edge_ids = true}, HubWithout(excluded), picks);
  EXPECT_TRUE(status.ok()) << status;
  return picks;
}

TEST(ExcludedEdgesTest, EntriesAreFoundOneByOne) {
  constexpr int64_t kEdges = 5000, kLeaves = 300;
  const auto store = Star(kEdges, kLeaves);
  const Picks all = PicksWithout(*store, {});
  ASSERT_EQ(all.neighbors.size(), static_cast<size_t>(kEdges));
  std::mt19937 random(5);
  for (const bool timed : {false, true}) {
    for (const int count : {1, 3, 8, 9, 200, 2000}) {
      ExcludedEdges excluded;
      excluded.timed = timed;
      std::set<std::pair<uint64_t, int64_t>> out;
      for (int i = 0; i < count; ++i) {  // some of them twice
        const uint64_t neighbor = random() % (kLeaves + 1);
        const int64_t time = timed ? static_cast<int64_t>(random() % 7) : 0;
        excluded.Add(kPopular, neighbor, time);
        out.emplace(neighbor, time);
      }
      excluded.Add(7, 1, 0);  // an entry of another list
      excluded.Sort();
      EXPECT_EQ(excluded.by_node.at(kPopular).size(), out.size());
      std::vector<int64_t> want;
      for (size_t i = 0; i < all.neighbors.size(); ++i) {
        const int64_t time = timed ? all.edge_ids[i] % 7 : 0;
        if (!out.contains({all.neighbors[i], time})) {
          want.push_back(all.edge_ids[i]);
        }
      }
      EXPECT_EQ(PicksWithout(*store, excluded).edge_ids, want) << count;
    }
  }
}

// Comparing every entry with every other would take 10^12 comparisons.
TEST(ExcludedEdgesTest, FindsAMillionEntriesOfOneListInOnePass) {
  constexpr int64_t kEdges = 1 << 20;
  const auto store = Star(kEdges, kEdges);
  ExcludedEdges excluded;
  for (int64_t i = kEdges; i > 0; --i) {
    if (i % 16 != 0) excluded.Add(kPopular, static_cast<uint64_t>(i), 0);
  }
  excluded.Sort();
  const Picks picks = PicksWithout(*store, excluded);
  ASSERT_EQ(picks.neighbors.size(), static_cast<size_t>(kEdges / 16));
  for (const uint64_t neighbor : picks.neighbors) {
    ASSERT_EQ(neighbor % 16, 0u);
  }
}

TEST(ExcludedEdgesTest, CancellationStopsWithinALongList) {
  const auto store = Star(3 << 20, 10);
  ExcludedEdges excluded;
  excluded.Add(kPopular, 1, 0);
  excluded.Sort();
  int looks = 0;
  CancelPoller poller([&] {
    return ++looks < 2 ? absl::OkStatus() : absl::CancelledError("enough");
  });
  Frontier frontier = HubWithout(excluded);
  frontier.poller = &poller;
  Picks picks;
  EXPECT_TRUE(absl::IsCancelled(DrawNeighbors(*store, 0, {}, frontier, picks)));
  EXPECT_EQ(looks, 2);
}

}  // namespace
}  // namespace millrace
