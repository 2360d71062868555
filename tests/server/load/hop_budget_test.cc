// SPDX-License-Identifier: Apache-2.0
#include "server/load/hop_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/sample/job.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

constexpr int64_t kNodes = 20;
constexpr int64_t kDegree = 7;

// A ring with `kDegree` in-edges per node; only partition 0 of 2 is mapped.
std::shared_ptr<const Store> HalfStore() {
  testing::TestGraph graph;
  graph.types = {{.name = "node", .count = kNodes}};
  graph.relations = {{}};
  graph.splits = {{}};
  for (int64_t v = 0; v < kNodes; ++v) {
    for (int64_t i = 1; i <= kDegree; ++i) {
      graph.relations[0].edges.push_back({(v + i) % kNodes, v});
    }
  }
  return testing::TestStore(graph, 2).Open({0});
}

class HopBudgetTest : public ::testing::Test {
 protected:
  // A frontier of every node, including those of the other partition.
  Frontier Everything(int32_t fanout) {
    ids_.resize(kNodes);
    for (uint64_t v = 0; v < kNodes; ++v) ids_[v] = v;
    return {.relation = 0, .fanout = fanout, .ids = ids_};
  }

  static Admission::Reservation Reserve(Admission& admission) {
    auto reservation =
        admission.Reserve({.client = "client", .end = [] {}}, 1, 0);
    EXPECT_TRUE(reservation.ok());
    return *std::move(reservation);
  }

  const std::shared_ptr<const Store> store_ = HalfStore();
  std::vector<uint64_t> ids_;
  DrawContext draw_;
};

TEST_F(HopBudgetTest, EstimatesTheRepliesToAFanout) {
  Admission admission(1 << 30);
  Admission::Reservation reservation = Reserve(admission);
  HopBudget budget(*store_, reservation, 1000);
  const std::vector<Frontier> frontiers = {Everything(3)};
  ASSERT_TRUE(budget.StartHop(draw_, frontiers).ok());
  const uint64_t before = admission.in_use();
  // Each node has 3 picks of at least 8 bytes.
  EXPECT_GT(before, 1000u + 3 * kNodes * 8);
  ASSERT_TRUE(budget.ExpectReply({true}).ok());
  ASSERT_TRUE(budget.AddPicks(0, 3 * kNodes / 2).ok());
  EXPECT_EQ(admission.in_use(), before);
}

// A faulty or malicious server could send such a reply.
TEST_F(HopBudgetTest, PicksBeyondTheFanoutAreCharged) {
  Admission admission(1 << 30);
  Admission::Reservation reservation = Reserve(admission);
  HopBudget budget(*store_, reservation, 0);
  const std::vector<Frontier> frontiers = {Everything(3)};
  ASSERT_TRUE(budget.StartHop(draw_, frontiers).ok());
  const uint64_t before = admission.in_use();
  ASSERT_TRUE(budget.AddPicks(0, 2 * kNodes).ok());
  EXPECT_EQ(admission.in_use(), before);
  ASSERT_TRUE(budget.AddPicks(0, 2 * kNodes).ok());
  EXPECT_GE(admission.in_use(), before + kNodes * sizeof(uint64_t));
}

// An edge is picked once, unless each seed has a tree of its own or edges are
// drawn with replacement.
TEST_F(HopBudgetTest, CountsEachEdgeOnceIfItCanBePickedOnlyOnce) {
  const std::vector<uint32_t> trees(kNodes, 0);
  const auto estimated = [&](bool replace, bool disjoint) {
    Admission admission(1 << 30);
    Admission::Reservation reservation = Reserve(admission);
    HopBudget budget(*store_, reservation, 0);
    draw_.replace = replace;
    Frontier frontier = Everything(2 * kDegree);
    if (disjoint) frontier.trees = trees;
    EXPECT_TRUE(budget.StartHop(draw_, {&frontier, 1}).ok());
    return admission.in_use() - kNodes * 24;  // for grouping the nodes
  };
  const uint64_t once = estimated(false, false);
  EXPECT_GT(once, kNodes * kDegree * sizeof(uint64_t));
  EXPECT_EQ(estimated(true, false), 2 * once);
  EXPECT_EQ(estimated(false, true), 2 * once);
}

TEST_F(HopBudgetTest, ReservesAllNeighborsOfPeersAsTheyCome) {
  Admission admission(1 << 30);
  Admission::Reservation reservation = Reserve(admission);
  HopBudget budget(*store_, reservation, 0);
  const std::vector<Frontier> frontiers = {Everything(kAllNeighbors)};
  ASSERT_TRUE(budget.StartHop(draw_, frontiers).ok());
  const uint64_t own = admission.in_use();
  // The reply itself holds at most all edges.
  ASSERT_TRUE(budget.ExpectReply({true}).ok());
  const uint64_t asked = admission.in_use();
  EXPECT_EQ(asked - own, kNodes * kDegree * sizeof(uint32_t));
  ASSERT_TRUE(budget.AddPicks(0, 10).ok());
  const uint64_t ten = admission.in_use() - asked;
  EXPECT_GE(ten, 10 * sizeof(uint64_t));
  ASSERT_TRUE(budget.AddPicks(0, 20).ok());
  EXPECT_EQ(admission.in_use() - asked, 3 * ten);
}

// What a node and a pick cost, and the picks of the half of the lists that is
// mapped.
TEST_F(HopBudgetTest, EdgeIdsAndRowsAreCharged) {
  constexpr uint64_t kOwn = kNodes / 2 * kDegree;
  const auto cost = [this](bool edge_ids, bool feature_rows) {
    Admission admission(1 << 30);
    Admission::Reservation reservation = Reserve(admission);
    HopBudget budget(*store_, reservation, 1000);
    draw_.edge_ids = edge_ids;
    draw_.feature_rows = feature_rows;
    const std::vector<Frontier> frontiers = {Everything(kAllNeighbors)};
    EXPECT_TRUE(budget.StartHop(draw_, frontiers).ok());
    return admission.in_use() - 1000 - kNodes * 24;
  };
  EXPECT_EQ(cost(false, false), kOwn * 48);
  EXPECT_EQ(cost(true, false), kOwn * 64);
  EXPECT_EQ(cost(false, true), kOwn * 64);
  EXPECT_EQ(cost(true, true), kOwn * 80);
}

// The bytes that the replies of some servers, all about the same frontiers, may
// take while they are in flight.
class HopRepliesTest : public HopBudgetTest {
 protected:
  uint64_t Expected(const std::vector<Frontier>& frontiers,
                    const std::vector<std::vector<bool>>& asked) {
    Admission admission(1 << 30);
    Admission::Reservation reservation = Reserve(admission);
    HopBudget budget(*store_, reservation, 0);
    EXPECT_TRUE(budget.StartHop(draw_, frontiers).ok());
    const uint64_t before = admission.in_use();
    for (const std::vector<bool>& one : asked) {
      EXPECT_TRUE(budget.ExpectReply(one).ok());
    }
    return admission.in_use() - before;
  }

  static constexpr uint64_t kEdges = kNodes * kDegree;
  static constexpr uint64_t kLargest = 8 << 20;
};

TEST_F(HopRepliesTest, HoldAtMostAllEdges) {
  const Frontier all = Everything(kAllNeighbors);
  EXPECT_EQ(Expected({all}, {{true}}), kEdges * 4);
  EXPECT_EQ(Expected({all}, {{false}}), 0u);
  EXPECT_EQ(Expected({all, all}, {{true, false}}), kEdges * 4);
  EXPECT_EQ(Expected({all, all}, {{true, true}}), 2 * kEdges * 4);
  EXPECT_EQ(Expected({all, all}, {{false, true}, {true, true}}),
            3 * kEdges * 4);
  draw_.edge_ids = true;
  EXPECT_EQ(Expected({all}, {{true}}), kEdges * 12);
  draw_.feature_rows = true;
  EXPECT_EQ(Expected({all}, {{true}}), kEdges * 20);
}

// Trees may pick the same edges, any number of times.
TEST_F(HopRepliesTest, AreNoLargerThanAServerSends) {
  const std::vector<uint32_t> trees(kNodes, 0);
  Frontier all = Everything(kAllNeighbors);
  all.trees = trees;
  EXPECT_EQ(Expected({all}, {{true}}), kLargest);
  EXPECT_EQ(Expected({all, all}, {{true, true}}), kLargest);
  EXPECT_EQ(Expected({all, all}, {{true, true}, {false, true}}), 2 * kLargest);
}

TEST_F(HopRepliesTest, AreEstimatedPerHop) {
  Admission admission(1 << 30);
  Admission::Reservation reservation = Reserve(admission);
  HopBudget budget(*store_, reservation, 0);
  const std::vector<Frontier> frontiers = {Everything(kAllNeighbors)};
  ASSERT_TRUE(budget.StartHop(draw_, frontiers).ok());
  const uint64_t hop = admission.in_use();
  ASSERT_TRUE(budget.ExpectReply({true}).ok());
  ASSERT_TRUE(budget.StartHop(draw_, frontiers).ok());
  EXPECT_EQ(admission.in_use(), 2 * hop);
}

// Walks that look at whole lists drop them after a step.
TEST_F(HopBudgetTest, ReleasedPicksMakeRoomForLaterHops) {
  Admission admission(1 << 30);
  Admission::Reservation reservation = Reserve(admission);
  HopBudget budget(*store_, reservation, 1000);
  draw_.edge_ids = true;
  const std::vector<Frontier> frontiers = {Everything(kAllNeighbors)};
  constexpr uint64_t kTheirs = 100;
  const auto hop = [&] {
    ASSERT_TRUE(budget.StartHop(draw_, frontiers).ok());
    ASSERT_TRUE(budget.AddPicks(0, kTheirs).ok());
  };
  hop();
  const uint64_t once = admission.in_use();
  constexpr uint64_t kOurs = kNodes / 2 * kDegree;
  for (int i = 0; i < 10; ++i) {
    budget.ReleasePicks(draw_, kOurs + kTheirs);
    hop();
  }
  // Grouping the nodes by owner is not given back.
  EXPECT_LE(admission.in_use(), once + 10 * kNodes * 24);
}

TEST_F(HopBudgetTest, EdgeIdsFromPeersAreCharged) {
  const auto bytes_of_replies = [this](bool edge_ids) {
    Admission admission(1 << 30);
    Admission::Reservation reservation = Reserve(admission);
    HopBudget budget(*store_, reservation, 0);
    draw_.edge_ids = edge_ids;
    const std::vector<Frontier> frontiers = {Everything(kAllNeighbors)};
    EXPECT_TRUE(budget.StartHop(draw_, frontiers).ok());
    const uint64_t before = admission.in_use();
    EXPECT_TRUE(budget.AddPicks(0, 100).ok());
    return admission.in_use() - before;
  };
  EXPECT_GE(bytes_of_replies(true),
            bytes_of_replies(false) + 100 * sizeof(int64_t));
}

TEST_F(HopBudgetTest, RepliesThatDoNotFitEndTheCall) {
  Admission admission(100000);
  auto other = admission.Reserve({.client = "other", .end = [] {}}, 2, 60000);
  ASSERT_TRUE(other.ok());
  Admission::Reservation reservation = Reserve(admission);
  HopBudget budget(*store_, reservation, 0);
  const std::vector<Frontier> frontiers = {Everything(kAllNeighbors)};
  ASSERT_TRUE(budget.StartHop(draw_, frontiers).ok());
  const absl::Status busy = budget.AddPicks(0, 1000);
  EXPECT_TRUE(absl::IsResourceExhausted(busy)) << busy;
  EXPECT_NE(busy.message().find("100000"), std::string::npos) << busy;
  const absl::Status never = budget.AddPicks(0, 100000);
  EXPECT_TRUE(absl::IsFailedPrecondition(never)) << never;
}

}  // namespace
}  // namespace millrace
