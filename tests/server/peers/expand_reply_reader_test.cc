// SPDX-License-Identifier: Apache-2.0
#include "server/peers/expand_reply_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/wire/ids.h"
#include "sampler.pb.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

// Users buy items; the edges have features.
Schema BuySchema() {
  Schema schema;
  schema.node_types = {{.name = "user", .count = 10},
                       {.name = "item", .count = 20}};
  schema.relations = {{.src = 0,
                       .name = "buys",
                       .dst = 1,
                       .edge_count = 30,
                       .feature = {DType::kFloat32, {2}}}};
  return schema;
}

template <typename T>
std::string Raw(const std::vector<T>& values) {
  std::string bytes;
  AppendRaw(std::span<const T>(values), bytes);
  return bytes;
}

class AppendPicksTest : public ::testing::Test {
 protected:
  AppendPicksTest() {
    draw_.edge_ids = true;
    draw_.feature_rows = true;
    frontier_.fanout = 2;
  }

  // Two users for the first item, and one for the second.
  static v1::ExpandReply_Picks Good() {
    v1::ExpandReply_Picks picks;
    picks.set_counts(Raw<uint32_t>({2, 1}));
    picks.set_neighbors(Raw<uint32_t>({9, 0, 4}));
    picks.set_edge_ids(Raw<int64_t>({7, 8, 29}));
    picks.set_feature_rows(Raw<uint64_t>({1, 0, 3}));
    return picks;
  }

  absl::StatusOr<size_t> Append(const v1::ExpandReply_Picks& picks) {
    return AppendPicks(picks, schema_, draw_, frontier_, picks_);
  }

  const Schema schema_ = BuySchema();
  DrawContext draw_;
  Frontier frontier_;
  Picks picks_;
};

TEST_F(AppendPicksTest, AreAppendedToExistingPicks) {
  for (int answer = 0; answer < 2; ++answer) {
    const auto nodes = Append(Good());
    ASSERT_TRUE(nodes.ok()) << nodes.status();
    EXPECT_EQ(*nodes, 2u);
  }
  EXPECT_THAT(picks_.counts, ElementsAre(2, 1, 2, 1));
  EXPECT_THAT(picks_.neighbors, ElementsAre(9, 0, 4, 9, 0, 4));
  EXPECT_THAT(picks_.edge_ids, ElementsAre(7, 8, 29, 7, 8, 29));
  EXPECT_THAT(picks_.feature_rows, ElementsAre(1, 0, 3, 1, 0, 3));
}

TEST_F(AppendPicksTest, AreRefusedIfInconsistent) {
  using Picks = v1::ExpandReply_Picks;
  const std::vector<std::function<void(Picks&)>> edits = {
      [](Picks& p) {
        p.set_counts(Raw<uint32_t>({2, 2}));
      },
      [](Picks& p) { p.set_counts(Raw<uint32_t>({2})); },
      [](Picks& p) {
        p.set_counts(Raw<uint32_t>({3, 0}));
      },  // fanout 2
      [](Picks& p) { p.set_counts(p.counts() + "x"); },
      [](Picks& p) {
        p.set_neighbors(Raw<uint32_t>({9, 0, 10}));
      },
      [](Picks& p) {
        p.set_neighbors(Raw<uint32_t>({9, 0}));
      },
      [](Picks& p) {
        p.set_edge_ids(Raw<int64_t>({7, 8}));
      },
      [](Picks& p) { p.clear_edge_ids(); },
      [](Picks& p) {
        p.set_feature_rows(Raw<uint64_t>({1, 0, 3, 4}));
      },
      [](Picks& p) { p.clear_feature_rows(); }};
  for (size_t i = 0; i < edits.size(); ++i) {
    Picks picks = Good();
    edits[i](picks);
    EXPECT_FALSE(Append(picks).ok()) << "edit " << i;
  }
  EXPECT_TRUE(picks_.counts.empty());
}

TEST_F(AppendPicksTest, HaveOnlyRequestedColumns) {
  draw_.edge_ids = false;
  EXPECT_FALSE(Append(Good()).ok());
  v1::ExpandReply_Picks picks = Good();
  picks.clear_edge_ids();
  EXPECT_TRUE(Append(picks).ok());
  draw_.feature_rows = false;
  EXPECT_FALSE(Append(picks).ok());
  picks.clear_feature_rows();
  EXPECT_TRUE(Append(picks).ok());
}

TEST_F(AppendPicksTest, AreUnlimitedIfAllNeighborsAreRequested) {
  v1::ExpandReply_Picks picks = Good();
  picks.set_counts(Raw<uint32_t>({3, 0}));
  frontier_.fanout = kAllNeighbors;
  EXPECT_TRUE(Append(picks).ok());
}

}  // namespace
}  // namespace millrace
