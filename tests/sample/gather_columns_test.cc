// SPDX-License-Identifier: Apache-2.0
#include "common/sample/gather_columns.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "common/sample/gather.h"
#include "tests/support/fake_feature_rows.h"
#include "tests/support/known_memory.h"
#include "tests/support/sampled.h"

namespace millrace {
namespace {

constexpr TypeIndex kUser = 0, kItem = 1;
constexpr RelationIndex kUserBuysItem = 0, kItemLikesUser = 1,
                        kItemCitesItem = 2;

void ExpectSameArray(const Array& got, const Array& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.shape(), want.shape());
  EXPECT_EQ(std::memcmp(got.data(), want.data(), want.total_bytes()), 0);
}

// Two sources of a graph: the features of one are read by `features`.
class GatherColumnsTest : public ::testing::TestWithParam<int> {
 protected:
  GatherColumnsTest()
      : store_(testing::TestStore(testing::RandomGraph(3), GetParam()).Open()),
        features_(std::make_shared<testing::FakeFeatureRows>(store_)),
        plain_(LocalBatchSource::Create(store_, 1).value()),
        source_(
            LocalBatchSource::Create(store_, 1, nullptr, features_).value()) {}

  static absl::StatusOr<Batch> Make(
      const LocalBatchSource& source,
      std::shared_ptr<ArrayMemory> memory = nullptr) {
    const auto job =
        ResolveJob(testing::ExplicitJob({4, 3}, "item"), source.manifest());
    BatchRequest request = {
        .explicit_seeds = testing::Seeds{{1, 2, 8, 20}, {}},
        .columns = DigestColumns(/*features=*/true, /*edge_features=*/true)};
    request.columns.labels = LabelRows::kAll;
    request.memory = std::move(memory);
    return source.Make(*job, request);
  }

  const std::shared_ptr<const Store> store_;
  const std::shared_ptr<testing::FakeFeatureRows> features_;
  const std::unique_ptr<LocalBatchSource> plain_, source_;
};

TEST_P(GatherColumnsTest, ReadsFeaturesWhereTheyAre) {
  const auto batch = Make(*source_);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto expected = Make(*plain_);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ExpectSameArray(batch->nodes[kItem].feature, expected->nodes[kItem].feature);
  EXPECT_TRUE(features_->Owns(batch->nodes[kItem].feature.data()));
  uint64_t rows = batch->nodes[kItem].count();
  for (const RelationIndex relation : {kUserBuysItem, kItemCitesItem}) {
    const EdgeBlock& edges = batch->edges[relation];
    ASSERT_GT(edges.edge_count(), 0);
    ExpectSameArray(edges.feature, expected->edges[relation].feature);
    EXPECT_TRUE(features_->Owns(edges.feature.data()));
    rows += edges.edge_count();
  }
  EXPECT_EQ(features_->counts().gpu, rows);
  // What has no features, and what are no features.
  EXPECT_FALSE(batch->nodes[kUser].feature.present());
  EXPECT_FALSE(batch->edges[kItemLikesUser].feature.present());
  ExpectSameArray(batch->nodes[kItem].label, expected->nodes[kItem].label);
  EXPECT_EQ(features_->block_count(), 3);
}

TEST_P(GatherColumnsTest, ReadsColumnsIntoTheMemoryOfTheRequest) {
  const auto memory = std::make_shared<testing::KnownMemory>(0);
  const auto batch = Make(*plain_, memory);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(memory->Owns(batch->nodes[kItem].feature.data()));
  EXPECT_TRUE(memory->Owns(batch->nodes[kItem].label.data()));
  EXPECT_TRUE(memory->Owns(batch->edges[kItemCitesItem].feature.data()));
  EXPECT_EQ(DigestBatch(*batch, store_->schema()),
            DigestBatch(*Make(*plain_), store_->schema()));
}

TEST_P(GatherColumnsTest, TellsTheReaderTheMemoryOfTheRequest) {
  const auto memory = std::make_shared<testing::KnownMemory>(1);
  const auto batch = Make(*source_, memory);
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(features_->memory(), memory.get());
  EXPECT_TRUE(memory->Owns(batch->nodes[kItem].label.data()));
  EXPECT_FALSE(memory->Owns(batch->nodes[kItem].feature.data()));
}

TEST_P(GatherColumnsTest, ReadsFeaturesOfEdgesWhoseListsAreElsewhere) {
  auto batch = Make(*plain_);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const Schema& schema = store_->schema();
  const Batch expected = *batch;
  for (size_t r = 0; r < batch->edges.size(); ++r) {
    EdgeBlock& block = batch->edges[r];
    const Relation& relation = schema.relations[r];
    if (!relation.feature.present()) continue;
    block.feature_parts =
        FeatureOwners(*batch, relation, block, store_->book(relation.dst));
    block.feature = Array();
    for (Array* array : {&block.indptr, &block.neighbor}) {
      *array = Array::Borrow(array->dtype(), array->shape(), nullptr, nullptr,
                             /*device=*/1);
    }
  }
  const auto job =
      ResolveJob(testing::ExplicitJob({4, 3}, "item"), store_->manifest());
  const absl::Status gathered = GatherColumns(
      *store_, *job, DigestColumns(/*features=*/true, /*edge_features=*/true),
      *batch);
  ASSERT_TRUE(gathered.ok()) << gathered;
  for (const RelationIndex relation : {kUserBuysItem, kItemCitesItem}) {
    ExpectSameArray(batch->edges[relation].feature,
                    expected.edges[relation].feature);
  }
}

TEST_P(GatherColumnsTest, PassesTheErrorsOfTheReader) {
  const absl::Status error = absl::InternalError("the device has failed");
  features_->FailWith(error);
  EXPECT_EQ(Make(*source_).status(), error);
  EXPECT_EQ(
      source_->Gather(kItem, NodeColumn::kFeature, std::vector<uint64_t>{1})
          .status(),
      error);
  EXPECT_EQ(features_->block_count(), 0);
}

TEST_P(GatherColumnsTest, GathersRowsOfNodes) {
  const std::vector<uint64_t> ids = {3, 30, 3, 0};
  const Array rows = source_->Gather(kItem, NodeColumn::kFeature, ids).value();
  ExpectSameArray(rows,
                  plain_->Gather(kItem, NodeColumn::kFeature, ids).value());
  EXPECT_TRUE(features_->Owns(rows.data()));
  const Array labels = source_->Gather(kItem, NodeColumn::kLabel, ids).value();
  ExpectSameArray(labels,
                  plain_->Gather(kItem, NodeColumn::kLabel, ids).value());
  EXPECT_EQ(features_->counts().gpu, ids.size());
  EXPECT_EQ(source_->Gather(kUser, NodeColumn::kFeature, ids).status(),
            absl::FailedPreconditionError("node type user has no features"));
}

INSTANTIATE_TEST_SUITE_P(Parts, GatherColumnsTest, ::testing::Values(0, 3));

}  // namespace
}  // namespace millrace
