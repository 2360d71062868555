// SPDX-License-Identifier: Apache-2.0
#include "common/sample/seeds/edge_directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "tests/support/sampled.h"

namespace millrace {
namespace {

using testing::TestGraph;
using EdgePair = std::pair<int64_t, int64_t>;

constexpr int64_t kHubs = 3;
constexpr int64_t kNodes = 2000;

// Hubs have longer lists than other nodes: that of hub h holds all nodes
// divisible by h + 2, each twice. All others have the next three nodes.
TestGraph Hubs(bool in) {
  TestGraph graph;
  graph.types = {{.count = kNodes}};
  graph.relations = {{.in = in, .out = !in}};
  std::vector<EdgePair>& edges = graph.relations[0].edges;
  for (int64_t v = 0; v < kNodes; ++v) {
    for (int64_t hub = 0; hub < kHubs; ++hub) {
      if (v % (hub + 2) == 0) edges.insert(edges.end(), 2, {v, hub});
    }
    for (int64_t i = 1; v >= kHubs && i <= 3; ++i) {
      edges.emplace_back((v + i) % kNodes, v);
    }
  }
  if (!in) {
    for (EdgePair& edge : edges) std::swap(edge.first, edge.second);
  }
  return graph;
}

TEST(FindEdgesTest, FindsEdgesInListsOfAnyLength) {
  for (const bool in : {true, false}) {
    const TestGraph graph = Hubs(in);
    const std::vector<EdgePair>& edges = graph.relations[0].edges;
    const std::set<EdgePair> all(edges.begin(), edges.end());
    const auto store = testing::TestStore(graph).Open();
    std::vector<uint64_t> src, dst;
    std::vector<uint8_t> want;
    // Owners are mixed, some pairs occur twice, and in a third of them one end
    // is almost always a hub.
    for (uint64_t i = 0; i < 3000; ++i) {
      src.push_back((i * 7) % 1500);
      dst.push_back(i % 3 == 0 ? i % (kHubs + 1) : (i * 7 + i % 5) % kNodes);
      if (!in) std::swap(src.back(), dst.back());
      want.push_back(all.contains({static_cast<int64_t>(src.back()),
                                   static_cast<int64_t>(dst.back())}));
    }
    ASSERT_GT(std::count(want.begin(), want.end(), 1), 500);
    ASSERT_GT(std::count(want.begin(), want.end(), 0), 500);
    CancelPoller poller;
    const auto found = FindEdges(*store, 0, {0, src, dst}, poller);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, want);
    const auto none = FindEdges(*store, 0, {0, {}, {}}, poller);
    ASSERT_TRUE(none.ok());
    EXPECT_TRUE(none->empty());
  }
}

// Lists of both kinds, short and long, without repeated neighbours.
TEST(FindEdgesTest, FindsEveryEntryOfAListAndNoOther) {
  for (const int64_t length : {1, 2, 63, 64, 65, 66, 500}) {
    TestGraph graph;
    graph.types = {{.count = kNodes}};
    graph.relations = {{.out = false}};
    std::vector<uint64_t> src;
    for (int64_t i = 0; i < length; ++i) {
      graph.relations[0].edges.emplace_back(3 * i + 1, 0);
      for (const int64_t v : {3 * i, 3 * i + 1, 3 * i + 2}) {
        src.push_back(static_cast<uint64_t>(v));
      }
    }
    const auto store = testing::TestStore(graph).Open();
    CancelPoller poller;
    const std::vector<uint64_t> dst(src.size(), 0);
    const auto found = FindEdges(*store, 0, {0, src, dst}, poller);
    ASSERT_TRUE(found.ok()) << found.status();
    for (size_t i = 0; i < src.size(); ++i) {
      EXPECT_EQ((*found)[i], i % 3 == 1)
          << "entry " << i / 3 << " of " << length;
    }
  }
}

TEST(FindEdgesTest, NamesThePositionOfNodesOwnedElsewhere) {
  const auto store = testing::TestStore(Hubs(true)).Open();
  const std::vector<uint64_t> src = {1, 2, 3}, dst = {0, 0, kNodes};
  CancelPoller poller;
  const absl::Status status =
      FindEdges(*store, 0, {0, src, dst}, poller).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_NE(status.message().find("id 2000 at position 2"), std::string::npos)
      << status;
}

// Node 0 is one end of 3 million edges.
class LongListTest : public ::testing::Test {
 protected:
  static constexpr int64_t kEdges = 3 << 20;
  static constexpr size_t kPairs = 1 << 20;

  static void SetUpTestSuite() {
    TestGraph graph;
    graph.types = {{.count = 1 << 20}};
    graph.relations = {{.out = false}};
    for (int64_t i = 0; i < kEdges; ++i) {
      graph.relations[0].edges.emplace_back(2 * i % (1 << 20), 0);
    }
    store_ = testing::TestStore(graph).Open();
  }
  static void TearDownTestSuite() { store_ = nullptr; }

  LongListTest() : src_(kPairs), dst_(kPairs, 0) {
    std::iota(src_.begin(), src_.end(), 0);
  }

  static std::shared_ptr<const Store> store_;
  std::vector<uint64_t> src_;
  const std::vector<uint64_t> dst_;
};

std::shared_ptr<const Store> LongListTest::store_;

// One search for each pair would read 10^12 entries.
TEST_F(LongListTest, IsReadOnceForAllPairs) {
  int looks = 0;
  CancelPoller poller([&] {
    ++looks;
    return absl::OkStatus();
  });
  const auto found = FindEdges(*store_, 0, {0, src_, dst_}, poller);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(std::count(found->begin(), found->end(), 1), kPairs / 2);
  EXPECT_EQ((*found)[2], 1);
  EXPECT_EQ((*found)[3], 0);
  EXPECT_GE(looks, 3);
  EXPECT_LE(looks, 4);
}

TEST_F(LongListTest, CancellationStopsWithinIt) {
  CancelPoller poller([] { return absl::CancelledError("nobody waits"); });
  EXPECT_TRUE(absl::IsCancelled(
      FindEdges(*store_, 0, {0, src_, dst_}, poller).status()));
}

}  // namespace
}  // namespace millrace
