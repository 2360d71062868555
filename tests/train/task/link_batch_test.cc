// SPDX-License-Identifier: Apache-2.0
#include "client/train/task/link_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/base/field_error.h"

namespace millrace::testing {
namespace {

Array Ids(std::vector<int64_t> ids) { return Array::Adopt(std::move(ids)); }
Array Rows(std::vector<uint32_t> rows) { return Array::Adopt(std::move(rows)); }

// Two edges, 40 -> 70 and 50 -> 80.
Batch TwoEdges() {
  Batch batch;
  batch.seed_kind = SeedKind::kEdge;
  batch.seed = Ids({40, 50});
  batch.seed_to_local = Rows({0, 1});
  batch.edge_seeds.dst = Ids({70, 80});
  batch.edge_seeds.dst_local = Rows({3, 4});
  return batch;
}

Batch WithNegatives(Batch batch) {
  batch.edge_seeds.negative_dst = Ids({90, 91, 92, 93});
  batch.edge_seeds.negative_local = Rows({5, 6, 7, 8});
  return batch;
}

LinkBatch LinksOf(const Batch& batch, NegativeMode mode) {
  const auto links = MakeLinkBatch(batch, mode);
  EXPECT_TRUE(links.ok()) << links.status();
  return links.value_or(LinkBatch());
}

bool Is(const at::Tensor& tensor, std::vector<int64_t> values) {
  return tensor.defined() &&
         tensor.to(at::kLong).equal(at::tensor(values, at::kLong));
}

TEST(LinkBatchTest, TheModeOfTheJobSaysHowNegativesBelongToSeeds) {
  const Batch with = WithNegatives(TwoEdges());
  for (const auto& [mode, shape] :
       {std::pair(NegativeMode::kBinary, NegativeShape::kPairs),
        std::pair(NegativeMode::kTriplet, NegativeShape::kPerSeed),
        std::pair(NegativeMode::kShared, NegativeShape::kShared),
        std::pair(NegativeMode::kInBatch, NegativeShape::kInBatch),
        // The split brings them.
        std::pair(NegativeMode::kNone, NegativeShape::kPerSeed)}) {
    EXPECT_EQ(LinksOf(with, mode).negatives, shape);
  }
  EXPECT_EQ(LinksOf(TwoEdges(), NegativeMode::kNone).negatives,
            NegativeShape::kNone);
}

TEST(LinkBatchTest, ViewsIdsAndRowsOfAllEnds) {
  Batch batch = WithNegatives(TwoEdges());
  batch.edge_seeds.negative_src = Ids({10, 11, 12, 13});
  batch.edge_seeds.negative_src_local = Rows({9, 2, 9, 2});
  const LinkBatch links = LinksOf(batch, NegativeMode::kBinary);
  EXPECT_EQ(links.size(), 2);
  EXPECT_TRUE(Is(links.id.src, {40, 50}));
  EXPECT_TRUE(Is(links.id.dst, {70, 80}));
  EXPECT_TRUE(Is(links.id.negative_src, {10, 11, 12, 13}));
  EXPECT_TRUE(Is(links.id.negative_dst, {90, 91, 92, 93}));
  EXPECT_TRUE(Is(links.row.src, {0, 1}));
  EXPECT_TRUE(Is(links.row.dst, {3, 4}));
  EXPECT_TRUE(Is(links.row.negative_src, {9, 2, 9, 2}));
  EXPECT_TRUE(Is(links.row.negative_dst, {5, 6, 7, 8}));
  EXPECT_FALSE(links.edge_type.defined());
  EXPECT_FALSE(links.label.defined());
  const LinkBatch bare = LinksOf(TwoEdges(), NegativeMode::kNone);
  EXPECT_FALSE(bare.id.negative_src.defined());
  EXPECT_FALSE(bare.row.negative_dst.defined());
}

TEST(LinkBatchTest, TypesOfEdgesAreLong) {
  Batch batch = TwoEdges();
  batch.edge_seeds.edge_type = Array::Adopt(std::vector<int32_t>{3, 0});
  const LinkBatch links = LinksOf(batch, NegativeMode::kNone);
  EXPECT_EQ(links.edge_type.scalar_type(), at::kLong);
  EXPECT_TRUE(Is(links.edge_type, {3, 0}));
}

TEST(LinkBatchTest, LabelsCountWithoutNegativesAlone) {
  Batch batch = TwoEdges();
  batch.edge_seeds.label = Array::Adopt(std::vector<float>{0, 1});
  const LinkBatch links = LinksOf(batch, NegativeMode::kNone);
  EXPECT_TRUE(links.label.equal(at::tensor({0., 1.}, at::kFloat)));
  EXPECT_FALSE(LinksOf(batch, NegativeMode::kInBatch).label.defined());
  batch = WithNegatives(std::move(batch));
  EXPECT_FALSE(LinksOf(batch, NegativeMode::kNone).label.defined());
  // So nothing is wrong with labels that are not read.
  batch.edge_seeds.label = Array::Adopt(std::vector<float>{0, 7});
  EXPECT_FALSE(LinksOf(batch, NegativeMode::kTriplet).label.defined());
}

TEST(LinkBatchTest, RefusesLabelsThatAreNoAnswers) {
  Batch batch = TwoEdges();
  batch.edge_seeds.label = Array::Adopt(std::vector<int64_t>{0, 7});
  const absl::Status status = MakeLinkBatch(batch, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "label 7 in row 1 is neither 0 nor 1");
}

TEST(TakeEndsTest, SourcesAndDestinationsHaveTheirOwnRows) {
  const at::Tensor source = at::tensor({10., 11., 12.}).view({3, 1});
  const at::Tensor destination = at::tensor({20., 21.}).view({2, 1});
  LinkEnds index;
  index.src = at::tensor({2, 0}, at::kInt);
  index.dst = at::tensor({1, 1}, at::kInt);
  LinkEnds taken = TakeEnds(index, source, destination);
  EXPECT_TRUE(Is(taken.src.squeeze(1), {12, 10}));
  EXPECT_TRUE(Is(taken.dst.squeeze(1), {21, 21}));
  EXPECT_FALSE(taken.negative_src.defined());
  EXPECT_FALSE(taken.negative_dst.defined());
  index.negative_src = at::tensor({1}, at::kInt);
  index.negative_dst = at::tensor({0}, at::kInt);
  taken = TakeEnds(index, source, destination);
  EXPECT_TRUE(Is(taken.negative_src.squeeze(1), {11}));
  EXPECT_TRUE(Is(taken.negative_dst.squeeze(1), {20}));
}

}  // namespace
}  // namespace millrace::testing
