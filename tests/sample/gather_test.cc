// SPDX-License-Identifier: Apache-2.0
#include "common/sample/gather.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <ios>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sampled.h"
#include "tests/support/test_store.h"

namespace millrace {
namespace {

constexpr TypeIndex kAuthor = 0, kPaper = 1;

template <typename T>
absl::StatusOr<std::vector<T>> Gather(const Store& store, TypeIndex type,
                                      NodeColumn column,
                                      const std::vector<uint64_t>& ids,
                                      size_t width = 1) {
  std::vector<T> rows(ids.size() * width);
  const absl::Status status = GatherRows(
      store, type, column, ids, reinterpret_cast<std::byte*>(rows.data()));
  if (!status.ok()) return status;
  return rows;
}

TEST(GatherTest, RowsAreThoseOfTheirNodes) {
  const testing::TestGraph graph = testing::RichGraph();
  for (const int parts : {1, 3}) {
    const std::unique_ptr<Store> store =
        testing::TestStore(graph, parts).Open();
    // All papers, the first one twice.
    const std::vector<uint64_t> ids = {0, 6, 2, 3, 5, 4, 1, 0};
    const auto originals =
        Gather<int64_t>(*store, kPaper, NodeColumn::kOriginalId, ids).value();
    const auto times =
        Gather<int64_t>(*store, kPaper, NodeColumn::kTime, ids).value();
    const auto features =
        Gather<float>(*store, kPaper, NodeColumn::kFeature, ids, 4).value();
    const auto labels =
        Gather<float>(*store, kPaper, NodeColumn::kLabel, ids, 2).value();
    const auto in =
        Gather<uint32_t>(*store, kPaper, NodeColumn::kInDegree, ids).value();
    const auto out =
        Gather<uint32_t>(*store, kPaper, NodeColumn::kOutDegree, ids).value();
    for (size_t i = 0; i < ids.size(); ++i) {
      const PartitionBook& book = store->book(kPaper);
      const int owner = book.Owner(ids[i]);
      const int64_t original =
          store->partition(owner)->nodes[kPaper].original_id.IntegerAt(
              static_cast<int64_t>(ids[i] - book.begin(owner)));
      EXPECT_EQ(originals[i], original);
      EXPECT_EQ(times[i], graph.types[1].time[original]);
      // The element (i, j) of these columns is i + j / 8.
      EXPECT_EQ(features[4 * i + 3], static_cast<float>(original) + 0.375F);
      EXPECT_EQ(labels[2 * i + 1], static_cast<float>(original) + 0.125F);
      uint32_t in_degree = 0;
      uint32_t out_degree = 0;
      for (const auto& [author, paper] : graph.relations[0].edges) {
        in_degree += paper == original;
      }
      for (const auto& [citing, cited] : graph.relations[1].edges) {
        in_degree += cited == original;
        out_degree += citing == original;
      }
      EXPECT_EQ(in[i], in_degree) << original;
      EXPECT_EQ(out[i], out_degree) << original;
    }
  }
}

TEST(GatherTest, ErrorsNameTheIdTheTypeAndTheLimit) {
  const std::unique_ptr<Store> store =
      testing::TestStore(testing::RichGraph(), 2).Open({0});
  const auto papers = static_cast<uint64_t>(store->book(kPaper).end(0));
  ASSERT_LT(papers, 7u);
  for (const NodeColumn column :
       {NodeColumn::kFeature, NodeColumn::kOriginalId, NodeColumn::kInDegree}) {
    EXPECT_EQ(Gather<int64_t>(*store, kPaper, column, {0, 7}, 4).status(),
              absl::InvalidArgumentError("id 7 of node type paper is out of "
                                         "range; the type has 7 nodes"));
    EXPECT_EQ(Gather<int64_t>(*store, kPaper, column, {papers - 1, papers}, 4)
                  .status(),
              absl::FailedPreconditionError(
                  "partition 1 is not mapped in this process"));
    EXPECT_TRUE(Gather<int64_t>(*store, kPaper, column, {papers - 1}, 4).ok());
  }
  for (const auto& [column, name] :
       {std::pair(NodeColumn::kFeature, "features"),
        std::pair(NodeColumn::kLabel, "labels"),
        std::pair(NodeColumn::kTime, "times")}) {
    EXPECT_EQ(Gather<int64_t>(*store, kAuthor, column, {0}).status(),
              absl::FailedPreconditionError(
                  std::string("node type author has no ") + name));
  }
  EXPECT_EQ(Gather<int64_t>(*store, kPaper, static_cast<NodeColumn>(99), {0})
                .status(),
            absl::InvalidArgumentError("no such column: 99"));
}

TEST(GatherTest, RowsOfEdgesAreThoseOfTheirPartition) {
  const testing::TestGraph graph = testing::RichGraph();
  const testing::TestStore stored(graph, 2);
  const std::unique_ptr<Store> store = stored.Open({1});
  const EdgeColumns& edges = store->partition(1)->edges[0];
  const auto rows = static_cast<uint64_t>(edges.feature.rows());
  ASSERT_GE(rows, 2u);
  const auto gather = [&](RelationIndex relation, int part,
                          const std::vector<uint64_t>& wanted) {
    std::vector<float> out(2 * wanted.size(), -1);
    const absl::Status status =
        GatherEdgeRows(*store, relation, part, wanted,
                       reinterpret_cast<std::byte*>(out.data()));
    return std::pair(status, out);
  };
  const auto [status, values] = gather(0, 1, {rows - 1, 0});
  EXPECT_EQ(status, absl::OkStatus());
  const auto id = [&](uint64_t row) {
    return static_cast<float>(edges.in.edge_id.As<int64_t>()[row]);
  };
  EXPECT_EQ(values, (std::vector<float>{id(rows - 1), id(rows - 1) + 0.125F,
                                        id(0), id(0) + 0.125F}));
  EXPECT_EQ(gather(0, 0, {0}).first,
            absl::FailedPreconditionError(
                "partition 0 is not mapped in this process"));
  EXPECT_EQ(gather(1, 1, {0}).first,
            absl::FailedPreconditionError(
                "the edges of paper__cites__paper have no features"));
  const absl::Status beyond = gather(0, 1, {0, rows}).first;
  EXPECT_TRUE(absl::IsDataLoss(beyond));
  EXPECT_EQ(
      beyond.message(),
      (stored.path() / EdgeFeaturePath(1, "author__writes__paper")).string() +
          " has " + std::to_string(rows) + " rows, but row " +
          std::to_string(rows) +
          " is needed\nrestore the store from a copy and verify it");
}

TEST(GatherTest, RowsOfEdgesOfSeveralPartitionsAreInOrder) {
  const testing::TestStore stored(testing::RichGraph(), 2);
  const std::unique_ptr<Store> store = stored.Open();
  const std::vector<uint32_t> parts = {1, 1, 0, 1};
  std::vector<uint64_t> rows = {1, 0, 1, 1};
  const auto gather = [&] {
    std::vector<float> out(2 * rows.size(), -1);
    EXPECT_EQ(GatherEdgeRows(*store, 0, parts, rows,
                             reinterpret_cast<std::byte*>(out.data())),
              absl::OkStatus());
    return out;
  };
  const auto id = [&](size_t i) {
    return static_cast<float>(store->partition(static_cast<int>(parts[i]))
                                  ->edges[0]
                                  .in.edge_id.As<int64_t>()[rows[i]]);
  };
  std::vector<float> expected;
  for (size_t i = 0; i < rows.size(); ++i) {
    expected.insert(expected.end(), {id(i), id(i) + 0.125F});
  }
  EXPECT_EQ(gather(), expected);
  rows[2] = 1000;
  std::vector<std::byte> out(8 * rows.size());
  const absl::Status beyond =
      GatherEdgeRows(*store, 0, parts, rows, out.data());
  EXPECT_TRUE(absl::IsDataLoss(beyond)) << beyond;
}

TEST(GatherTest, DegreesOfADamagedListAreDataLoss) {
  const testing::TestStore stored(testing::Cycle(6));
  const std::string file =
      (stored.path() / ListPath(0, "node__to__node", Direction::kIn, "indptr"))
          .string();
  {
    // The begin of the last list, after its end.
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    const int64_t begin = 13;
    out.seekp(-2 * static_cast<int>(sizeof begin), std::ios::end);
    out.write(reinterpret_cast<const char*>(&begin), sizeof begin);
  }
  const std::unique_ptr<Store> store = stored.Open();
  EXPECT_EQ(Gather<uint32_t>(*store, 0, NodeColumn::kInDegree, {0, 3}).value(),
            (std::vector<uint32_t>{2, 2}));
  const absl::Status status =
      Gather<uint32_t>(*store, 0, NodeColumn::kInDegree, {0, 5}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(std::string(status.message()).find(file + " is damaged at row 5"),
            0u)
      << status;
}

}  // namespace
}  // namespace millrace
