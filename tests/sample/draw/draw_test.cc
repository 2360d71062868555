// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw/draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/sample/draw_rule.h"
#include "tests/support/sampled.h"
#include "tests/support/store_builder.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

using testing::TestGraph;

// Bytes allocated by the program; 0 with the sanitizers, whose allocator does
// not report them.
size_t HeldBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(DrawNeighborsTest, KeepsNoLargeMemoryAfterAHugeDraw) {
  constexpr int64_t kDegree = 1000;
  TestGraph graph;
  graph.types = {{.count = kDegree + 1}};
  graph.relations = {{}};
  for (int64_t v = 1; v <= kDegree; ++v) {
    graph.relations[0].edges.push_back({v, 0});
  }
  const auto store = testing::TestStore(graph).Open();
  const size_t before = HeldBytes();
  {
    const std::vector<uint64_t> hub(10000, 0);
    const Frontier frontier{.relation = 0, .fanout = -1, .ids = hub};
    Picks picks;
    ASSERT_TRUE(DrawNeighbors(*store, 0, {}, frontier, picks).ok());
    EXPECT_EQ(picks.neighbors.size(), 10000 * kDegree);  // 80 MB
  }
  EXPECT_LT(HeldBytes(), before + (size_t{20} << 20));
}

// Overwrites the last number of a .npy file.
void SpoilLast(const std::filesystem::path& file, uint32_t number) {
  std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
  out.seekp(-4, std::ios::end);
  out.write(reinterpret_cast<const char*>(&number), sizeof number);
}

TEST(DrawNeighborsTest, NonexistentNeighborsAreDataLoss) {
  const testing::TestStore stored(testing::Cycle(6));
  const std::filesystem::path file =
      stored.path() / ListPath(0, "node__to__node", Direction::kIn, "indices");
  constexpr uint64_t kLast = 5;
  const Frontier frontier{
      .relation = 0, .fanout = -1, .ids = std::span(&kLast, 1)};
  for (const uint32_t neighbor : {6u, 7u, 5u}) {
    SpoilLast(file, neighbor);
    const auto store = stored.Open();
    Picks picks;
    const absl::Status status = DrawNeighbors(*store, 0, {}, frontier, picks);
    if (neighbor == 5) {
      EXPECT_TRUE(status.ok()) << status;
      continue;
    }
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr("indices.npy"));
  }
}

TEST(DrawNeighborsTest, ListsWithoutTheColumnsOfARuleAreRefused) {
  const auto directory = testing::TestDirectory("no_columns");
  const TestGraph graph = testing::Cycle(6);
  ASSERT_TRUE(testing::BuildStore(graph, 1, testing::SpreadAssignment(graph, 1),
                                  directory / "store",
                                  /*neighbor_original_ids=*/false)
                  .ok());
  const auto store = Store::Open(directory / "store").value();
  constexpr uint64_t kNode = 0;
  const NodeSet among;
  const Frontier frontier{.relation = 0,
                          .fanout = -1,
                          .ids = std::span(&kNode, 1),
                          .among = &among};
  for (const DrawRuleInfo& rule : kDrawRules) {
    Picks picks;
    const absl::Status status =
        DrawNeighbors(*store, 0, {.rule = rule.rule}, frontier, picks);
    EXPECT_EQ(absl::IsFailedPrecondition(status),
              rule.reads_weight_sums || rule.reads_original_ids)
        << rule.name << ": " << status;
  }
}

// The first and last numbers of each order come from tests/oracle/draws.py; the
// domain of the Feistel network grows at powers of four.
TEST(PermutationTest, MatchesTheOracle) {
  constexpr PhiloxKey kKey = {0x12345678, 0x9ABCDEF0};
  const std::vector<std::pair<uint64_t, std::vector<uint64_t>>> orders = {
      {255, {217, 97, 35, 38}},         {256, {217, 97, 35, 174}},
      {257, {7, 109, 157, 181}},        {1023, {872, 779, 157, 354}},
      {1024, {872, 779, 157, 903}},     {1025, {403, 574, 542, 174}},
      {4095, {3694, 1944, 3158, 3248}}, {4096, {3694, 1944, 3158, 2954}},
      {4097, {223, 2388, 2523, 1776}}};
  for (const auto& [size, want] : orders) {
    const Permutation order(kKey, size);
    const std::vector<uint64_t> got = {order(0), order(1), order(2),
                                       order(size - 1)};
    EXPECT_EQ(got, want) << size;
  }
}

}  // namespace
}  // namespace millrace
