// SPDX-License-Identifier: Apache-2.0
#include "client/remote/missing_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kHomeOfBatch = 0;
constexpr TypeIndex kPaperType = 0;

// Sixty papers, twenty in each of three partitions, with all columns, which
// cite each other.
Manifest PaperManifest() {
  Manifest manifest;
  manifest.schema.node_types = {{.name = "paper",
                                 .count = 60,
                                 .feature = {DType::kFloat32, {2}},
                                 .label = {DType::kInt64, {}}}};
  manifest.schema.relations = {{.src = kPaperType,
                                .name = "cites",
                                .dst = kPaperType,
                                .feature = {DType::kFloat32, {1}}}};
  manifest.books = {PartitionBook({0, 20, 40, 60})};
  return manifest;
}

// A batch without columns: two expanded seeds and their four neighbours.
Batch CitationBatch(Direction direction) {
  Batch batch;
  batch.direction = direction;
  batch.hops = 1;
  NodeBlock& papers = batch.nodes.emplace_back();
  papers.hop_offsets = {0, 2, 6};
  papers.id = Array::Adopt(std::vector<uint32_t>{5, 25, 45, 21, 41, 1});
  EdgeBlock& cites = batch.edges.emplace_back();
  cites.indptr = Array::Adopt(std::vector<uint32_t>{0, 2, 4});
  cites.neighbor = Array::Adopt(std::vector<uint32_t>{2, 3, 4, 5});
  cites.feature_row = Array::Adopt(std::vector<uint64_t>{70, 80, 90, 100});
  return batch;
}

class MissingRowsTest : public ::testing::Test {
 protected:
  std::vector<RowRequest> NodeRows(const CachedFeatures* cache = nullptr) {
    return MissingNodeRows({manifest_, columns_, kHomeOfBatch, cache}, batch_,
                           kPaperType);
  }
  std::vector<RowRequest> EdgeRows() {
    return MissingEdgeRows({manifest_, columns_, kHomeOfBatch, nullptr}, batch_,
                           /*relation=*/0);
  }

  static void Expect(const RowRequest& request, int partition,
                     const std::vector<uint64_t>& ids,
                     const std::vector<uint32_t>& rows, const Array& target) {
    EXPECT_EQ(request.partition, partition);
    EXPECT_EQ(request.ids, ids);
    EXPECT_EQ(request.rows, rows);
    EXPECT_EQ(request.target.data(), target.data());
  }

  NodeBlock& papers() { return batch_.nodes[kPaperType]; }

  Manifest manifest_ = PaperManifest();
  Columns columns_;
  Batch batch_ = CitationBatch(Direction::kIn);
};

TEST_F(MissingRowsTest, RequestsEachColumnsRowsFromTheirOwners) {
  columns_.feature_dtype = DType::kFloat16;
  papers().feature = Array::Allocate(DType::kFloat16, {6, 2});
  papers().label = Array::Allocate(DType::kInt64, {2});
  papers().original_id = Array::Allocate(DType::kInt64, {6});
  papers().degree = Array::Allocate(DType::kUint32, {6});
  const std::vector<RowRequest> requests = NodeRows();
  ASSERT_EQ(requests.size(), 7u);
  const std::pair<NodeColumn, const Array*> whole[] = {
      {NodeColumn::kFeature, &papers().feature},
      {NodeColumn::kOriginalId, &papers().original_id},
      {NodeColumn::kInDegree, &papers().degree}};
  for (size_t c = 0; c < 3; ++c) {
    const auto& [column, target] = whole[c];
    const size_t at = c == 0 ? 0 : 2 * c + 1;  // labels need one request
    Expect(requests[at], 1, {25, 21}, {1, 3}, *target);
    Expect(requests[at + 1], 2, {45, 41}, {2, 4}, *target);
    for (size_t i = at; i < at + 2; ++i) {
      EXPECT_EQ(requests[i].column, column);
      EXPECT_EQ(requests[i].feature_dtype,
                c == 0 ? DType::kFloat16 : DType::kNone);
    }
  }
  Expect(requests[2], 1, {25}, {1}, papers().label);
  EXPECT_EQ(requests[2].column, NodeColumn::kLabel);
  EXPECT_EQ(requests[2].feature_dtype, DType::kNone);
  for (const RowRequest& request : requests) {
    EXPECT_EQ(request.type, kPaperType);
    EXPECT_EQ(request.edge_relation, -1);
  }
}

TEST_F(MissingRowsTest, RequestsLabelsOfAllNodesOnDemand) {
  columns_.labels = LabelRows::kAll;
  papers().label = Array::Allocate(DType::kInt64, {6});
  const std::vector<RowRequest> requests = NodeRows();
  ASSERT_EQ(requests.size(), 2u);
  Expect(requests[0], 1, {25, 21}, {1, 3}, papers().label);
  Expect(requests[1], 2, {45, 41}, {2, 4}, papers().label);
}

TEST_F(MissingRowsTest, DegreesAreThoseOfTheDirection) {
  batch_ = CitationBatch(Direction::kOut);
  papers().degree = Array::Allocate(DType::kUint32, {6});
  const std::vector<RowRequest> requests = NodeRows();
  ASSERT_EQ(requests.size(), 2u);
  for (const RowRequest& request : requests) {
    EXPECT_EQ(request.column, NodeColumn::kOutDegree);
  }
}

// The cache holds the first two rows of partition 1, and the first of partition
// 2.
TEST_F(MissingRowsTest, DoesNotRequestCachedFeatures) {
  papers().feature = Array::Allocate(DType::kFloat32, {6, 2});
  papers().original_id = Array::Allocate(DType::kInt64, {6});
  auto column = std::make_shared<CachedColumn>();
  column->counts = {0, 2, 1};
  column->first = {0, 0, 2};
  column->rows = Array::Allocate(DType::kFloat32, {3, 2});
  const CachedFeatures cache(manifest_, {column});
  const std::vector<RowRequest> requests = NodeRows(&cache);
  ASSERT_EQ(requests.size(), 4u);
  Expect(requests[0], 1, {25}, {1}, papers().feature);
  Expect(requests[1], 2, {45, 41}, {2, 4}, papers().feature);
  Expect(requests[2], 1, {25, 21}, {1, 3}, papers().original_id);
  Expect(requests[3], 2, {45, 41}, {2, 4}, papers().original_id);
}

TEST_F(MissingRowsTest, ColumnsThatTheBatchLacksHaveNoMissingRows) {
  EXPECT_THAT(NodeRows(), IsEmpty());
  EXPECT_THAT(EdgeRows(), IsEmpty());
}

TEST_F(MissingRowsTest, ASinglePartitionHasNoMissingRows) {
  papers().feature = Array::Allocate(DType::kFloat32, {6, 2});
  batch_.edges[0].feature = Array::Allocate(DType::kFloat32, {4, 1});
  manifest_.books = {PartitionBook({0, 60})};
  EXPECT_THAT(NodeRows(), IsEmpty());
  EXPECT_THAT(EdgeRows(), IsEmpty());
}

// The edges of in-lists end at the seeds, 5 and 25.
TEST_F(MissingRowsTest, EdgeFeaturesAreWhereTheListsAre) {
  const Array& target = batch_.edges[0].feature =
      Array::Allocate(DType::kFloat32, {4, 1});
  const std::vector<RowRequest> requests = EdgeRows();
  ASSERT_EQ(requests.size(), 1u);
  Expect(requests[0], 1, {90, 100}, {2, 3}, target);
  EXPECT_EQ(requests[0].edge_relation, 0);
}

// The edges of out-lists end at 45, 21, 41 and 1.
TEST_F(MissingRowsTest, EdgeFeaturesAreWhereTheDestinationsAre) {
  batch_ = CitationBatch(Direction::kOut);
  const Array& target = batch_.edges[0].feature =
      Array::Allocate(DType::kFloat32, {4, 1});
  const std::vector<RowRequest> requests = EdgeRows();
  ASSERT_EQ(requests.size(), 2u);
  Expect(requests[0], 1, {80}, {1}, target);
  Expect(requests[1], 2, {70, 90}, {0, 2}, target);
}

}  // namespace
}  // namespace millrace
