// SPDX-License-Identifier: Apache-2.0
#include "common/graph/edge_split_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;

Array Int64s(std::vector<int64_t> values) {
  return Array::Adopt(std::move(values));
}

// Two pairs author -> paper with all columns.
EdgeSplitColumns SplitOfTwoPairs() {
  EdgeSplitColumns split;
  split.name = "pairs";
  split.src = Int64s({4, 0});
  split.dst = Int64s({6, 2});
  split.edge_id = Int64s({3, 9});
  split.time = Int64s({7, 8});
  split.edge_type = Array::Adopt(std::vector<int32_t>{2, 1});
  split.label = Array::Adopt(std::vector<float>{0.5F, 1});
  split.negative = Array::Adopt(std::vector<int64_t>{0, 1, 2, 3, 4, 6}, {2, 3});
  return split;
}

class EdgeSplitWriterTest : public ::testing::Test {
 protected:
  EdgeSplitWriterTest() {
    schema_.node_types = {{.name = "author", .count = 5},
                          {.name = "paper", .count = 7}};
    schema_.relations = {{.src = 0, .name = "writes", .dst = 1}};
  }

  // Ids are the original ids in reverse.
  absl::StatusOr<EdgeSplitInfo> Write(const EdgeSplitColumns& split) {
    files_.clear();
    return WriteEdgeSplit(
        split, schema_, {PartitionBook({0, 5, 5}), PartitionBook({0, 3, 7})},
        [this](TypeIndex type, int64_t original) {
          const int64_t count = schema_.node_types[type].count;
          return static_cast<uint64_t>(count - 1 - original);
        },
        [this](const std::string& path, const Array& array) {
          files_[path] = array;
          return path == refused_ ? absl::DataLossError("refused")
                                  : absl::OkStatus();
        });
  }

  Schema schema_;
  std::map<std::string, Array> files_;
  std::string refused_;
};

constexpr char kPairsFolder[] = "splits/author__writes__paper/pairs/";

TEST_F(EdgeSplitWriterTest, WritesIdsAndOriginalIds) {
  const auto info = Write(SplitOfTwoPairs());
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->name, "pairs");
  EXPECT_EQ(info->count, 2);
  // Papers 6 and 2 have ids 0 and 4, which partitions 0 and 1 own.
  EXPECT_THAT(info->part_counts, ElementsAre(1, 1));
  EXPECT_TRUE(info->has_edge_id && info->has_time && info->has_edge_type);
  EXPECT_EQ(info->label, (ColumnSpec{DType::kFloat32, {}}));
  EXPECT_EQ(info->negatives, 3);
  const auto file = [this](const char* column) {
    return files_.at(std::string(kPairsFolder) + column + ".npy");
  };
  EXPECT_EQ(files_.size(), 10u);
  EXPECT_THAT(file("src").As<uint32_t>(), ElementsAre(0, 4));
  EXPECT_THAT(file("dst").As<uint32_t>(), ElementsAre(0, 4));
  EXPECT_THAT(file("src_original_id").As<int64_t>(), ElementsAre(4, 0));
  EXPECT_THAT(file("dst_original_id").As<int64_t>(), ElementsAre(6, 2));
  EXPECT_THAT(file("edge_id").As<int64_t>(), ElementsAre(3, 9));
  EXPECT_THAT(file("time").As<int64_t>(), ElementsAre(7, 8));
  EXPECT_THAT(file("edge_type").As<int32_t>(), ElementsAre(2, 1));
  EXPECT_THAT(file("label").As<float>(), ElementsAre(0.5F, 1));
  EXPECT_THAT(file("negative").As<uint32_t>(), ElementsAre(6, 5, 4, 3, 2, 0));
  EXPECT_THAT(file("negative_original_id").As<int64_t>(),
              ElementsAre(0, 1, 2, 3, 4, 6));
}

TEST_F(EdgeSplitWriterTest, ColumnsAreOptional) {
  EdgeSplitColumns split;
  split.name = "pairs";
  split.src = Int64s({});
  split.dst = Int64s({});
  const auto info = Write(split);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->count, 0);
  EXPECT_THAT(info->part_counts, ElementsAre(0, 0));
  EXPECT_FALSE(info->has_edge_id || info->has_time || info->has_edge_type);
  EXPECT_FALSE(info->label.present());
  EXPECT_EQ(info->negatives, 0);
  EXPECT_EQ(files_.size(), 4u);
}

TEST_F(EdgeSplitWriterTest, NamesNodesThatDoNotExist) {
  struct Case {
    Array EdgeSplitColumns::*column;
    Array value;
    std::string message;
  };
  for (const Case& wrong : std::vector<Case>{
           {&EdgeSplitColumns::src, Int64s({0, 5}),
            "source 1 is node 5, but node type author has 5 nodes"},
           {&EdgeSplitColumns::src, Int64s({-1, 0}),
            "source 0 is node -1, but node type author has 5 nodes"},
           {&EdgeSplitColumns::dst, Int64s({7, 0}),
            "destination 0 is node 7, but node type paper has 7 nodes"},
           {&EdgeSplitColumns::negative,
            Array::Adopt(std::vector<int64_t>{0, 0, 0, 0, 7, 0}, {2, 3}),
            "negative 4 is node 7, but node type paper has 7 nodes"}}) {
    EdgeSplitColumns split = SplitOfTwoPairs();
    split.*wrong.column = wrong.value;
    EXPECT_EQ(Write(split).status(),
              absl::InvalidArgumentError("split \"pairs\": " + wrong.message));
  }
}

TEST_F(EdgeSplitWriterTest, NamesColumnsOfOtherLengths) {
  struct Case {
    Array EdgeSplitColumns::*column;
    Array value;
    std::string name;
  };
  for (const Case& wrong : std::vector<Case>{
           {&EdgeSplitColumns::dst, Int64s({0, 1, 2}), "dst has 3"},
           {&EdgeSplitColumns::edge_id, Int64s({0}), "edge_id has 1"},
           {&EdgeSplitColumns::time, Int64s({0, 1, 2}), "time has 3"},
           {&EdgeSplitColumns::edge_type, Array::Adopt(std::vector<int32_t>{0}),
            "edge_type has 1"},
           {&EdgeSplitColumns::label, Int64s({0}), "label has 1"},
           {&EdgeSplitColumns::negative,
            Array::Adopt(std::vector<int64_t>{0, 1}, {1, 2}),
            "negative has 1"}}) {
    EdgeSplitColumns split = SplitOfTwoPairs();
    split.*wrong.column = wrong.value;
    EXPECT_EQ(Write(split).status(),
              absl::InvalidArgumentError("split \"pairs\": column " +
                                         wrong.name + " rows for 2 pairs"));
  }
}

TEST_F(EdgeSplitWriterTest, StopsAtAnErrorOfWriting) {
  ASSERT_TRUE(Write(SplitOfTwoPairs()).ok());
  const std::map<std::string, Array> all = files_;
  for (const auto& [path, unused] : all) {
    refused_ = path;
    EXPECT_EQ(Write(SplitOfTwoPairs()).status(), absl::DataLossError("refused"))
        << path;
  }
}

}  // namespace
}  // namespace millrace
