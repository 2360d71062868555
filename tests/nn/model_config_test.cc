// SPDX-License-Identifier: Apache-2.0
// What ValidateModel refuses, at the limits.
#include "client/nn/model_config.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "common/base/field_error.h"

namespace millrace {
namespace {

ModelConfig GoodConfig() {
  ModelConfig config;
  config.in = 3;
  config.hidden = 6;
  config.out = 2;
  return config;
}

absl::Status Validated(const ModelConfig& config) {
  return ValidateModel(config, GraphShape::Homogeneous(config.in));
}

std::string Refusal(const ModelConfig& config) {
  const absl::Status status = Validated(config);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// Items have features, and users have none.
GraphShape UsersAndItems() {
  GraphShape shape;
  shape.types = {{"user", 100, 0}, {"item", 50, 4}};
  shape.relations = {{"user__buys__item", 0, 1}, {"item__of__user", 1, 0}};
  shape.seed_type = 1;
  return shape;
}

TEST(ModelConfigTest, LayersAreFromOneTo255) {
  ModelConfig config = GoodConfig();
  config.layers = 1;
  EXPECT_TRUE(Validated(config).ok());
  config.layers = 255;
  EXPECT_TRUE(Validated(config).ok());
  config.layers = 0;
  EXPECT_EQ(Refusal(config), "layers 0 is out of range: 1 to 255");
  config.layers = 256;
  EXPECT_EQ(Refusal(config), "layers 256 is out of range: 1 to 255");
}

TEST(ModelConfigTest, HiddenColumnsAreFromOneToTheMostOfARow) {
  ModelConfig config = GoodConfig();
  config.hidden = 1;
  EXPECT_TRUE(Validated(config).ok());
  config.hidden = 1 << 20;
  EXPECT_TRUE(Validated(config).ok());
  config.hidden = 0;
  EXPECT_EQ(Refusal(config), "hidden 0 is out of range: 1 to 1048576");
  config.hidden = (1 << 20) + 1;
  EXPECT_EQ(Refusal(config), "hidden 1048577 is out of range: 1 to 1048576");
}

TEST(ModelConfigTest, HeadsDivideTheHiddenColumnsOfAttentionAlone) {
  ModelConfig config = GoodConfig();
  config.heads = 0;
  EXPECT_EQ(Refusal(config), "heads 0 is out of range: at least 1");
  config.heads = 4;
  EXPECT_TRUE(Validated(config).ok());  // sage has no heads
  config.kind = ModelKind::kGat;
  EXPECT_EQ(Refusal(config), "heads 4: does not divide the 6 hidden columns");
  EXPECT_EQ(ReasonOf(Validated(config)), "heads_do_not_divide");
  config.heads = 3;
  EXPECT_TRUE(Validated(config).ok());
}

TEST(ModelConfigTest, NumbersOfSomeKindsHaveLimits) {
  ModelConfig config = GoodConfig();
  config.gin_mlp = 1;
  EXPECT_TRUE(Validated(config).ok());
  config.gin_mlp = 0;
  EXPECT_EQ(Refusal(config), "gin_mlp 0 is out of range: 1 to 2");
  config.gin_mlp = 3;
  EXPECT_EQ(Refusal(config), "gin_mlp 3 is out of range: 1 to 2");
  config = GoodConfig();
  config.bases = 1000;
  EXPECT_TRUE(Validated(config).ok());
  config.bases = -1;
  EXPECT_EQ(Refusal(config), "bases -1 is out of range: at least 0");
}

TEST(ModelConfigTest, DropoutIsBelowOne) {
  ModelConfig config = GoodConfig();
  config.dropout = 0;
  EXPECT_TRUE(Validated(config).ok());
  config.dropout = 0.999999;
  EXPECT_TRUE(Validated(config).ok());
  config.dropout = 1;
  EXPECT_EQ(Refusal(config),
            "dropout 1 is out of range: at least 0 and below 1");
  config.dropout = -0.1;
  EXPECT_EQ(Refusal(config),
            "dropout -0.1 is out of range: at least 0 and below 1");
  config.dropout = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Refusal(config),
            "dropout nan is out of range: at least 0 and below 1");
}

TEST(ModelConfigTest, FeaturesAndClassesAreNeeded) {
  ModelConfig config = GoodConfig();
  config.in = config.out = 1;
  EXPECT_TRUE(Validated(config).ok());
  config.in = 0;
  EXPECT_EQ(Refusal(config),
            "a model from 0 features to 1 classes; both must be at least 1");
  config.in = 1;
  config.out = 0;
  EXPECT_EQ(Refusal(config),
            "a model from 1 features to 0 classes; both must be at least 1");
  // Models of edges have neither.
  config.in = 0;
  config.decoder = DecoderKind::kDot;
  EXPECT_TRUE(Validated(config).ok());
}

TEST(ModelConfigTest, TypesWithoutFeaturesGetEmbeddings) {
  EXPECT_TRUE(ValidateModel(GoodConfig(), UsersAndItems()).ok());
}

TEST(ModelConfigTest, GcnIsForOneRelation) {
  ModelConfig config = GoodConfig();
  config.kind = ModelKind::kGcn;
  EXPECT_TRUE(Validated(config).ok());
  const absl::Status status = ValidateModel(config, UsersAndItems());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(),
            "model gcn: needs one node type and one relation, but the graph "
            "has 2 and 2\nuse sage, gat, gatv2, gin or rgcn");
}

TEST(ModelConfigTest, EmbeddingsHaveNoLayersAndLearnLinks) {
  ModelConfig config = GoodConfig();
  config.kind = ModelKind::kEmbedding;
  config.layers = 0;
  EXPECT_EQ(Refusal(config), "model embedding needs task link");
  config.decoder = DecoderKind::kDot;
  EXPECT_TRUE(Validated(config).ok());
  config.layers = 1;
  EXPECT_EQ(Refusal(config),
            "layers 1: the model embedding has none\nleave it out");
}

TEST(ModelConfigTest, MessagesMustReachTheSeeds) {
  GraphShape shape = UsersAndItems();
  shape.relations.erase(shape.relations.begin());
  const absl::Status status = ValidateModel(GoodConfig(), shape);
  EXPECT_EQ(status, WithReason(absl::InvalidArgumentError(
                                   "no relation leads to the seeds' node type "
                                   "item"),
                               Reason{"seeds_without_neighbors"}));
  EXPECT_EQ(ReasonOf(status), "seeds_without_neighbors");
  // Rows of both ends are scored even if they have no neighbours.
  ModelConfig config = GoodConfig();
  config.decoder = DecoderKind::kDot;
  EXPECT_TRUE(ValidateModel(config, shape).ok());
}

TEST(ModelConfigTest, EmbeddingsAreLimitedToTheirMemory) {
  GraphShape shape = UsersAndItems();
  shape.types.push_back({"tag", 10, 0});
  shape.relations.push_back({"tag__of__item", 2, 1});
  ModelConfig config = GoodConfig();
  config.hidden = 1 << 10;
  shape.types[0].count = (1 << 17) - 10;  // 2^17 with the tags
  EXPECT_TRUE(ValidateModel(config, shape).ok());
  ++shape.types[0].count;
  const absl::Status status = ValidateModel(config, shape);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "node types without features have 131073 nodes (user: 131063), and "
            "embeddings of 1024 columns for them would be more than 134217728 "
            "values");
  EXPECT_EQ(ReasonOf(status), "too_many_embeddings");
  // The largest is named, wherever it is.
  shape.types[2].count = 200000;
  EXPECT_NE(
      std::string(ValidateModel(config, shape).message()).find("(tag: 200000)"),
      std::string::npos);
}

TEST(ModelConfigTest, OnlyEmbeddingsThatAreReadCount) {
  GraphShape shape = UsersAndItems();
  shape.types.push_back({"far", int64_t{1} << 40, 0});
  shape.relations.push_back({"far__of__user", 2, 0});
  ModelConfig config = GoodConfig();
  config.layers = 1;
  EXPECT_TRUE(ValidateModel(config, shape).ok());
  config.layers = 2;
  EXPECT_FALSE(ValidateModel(config, shape).ok());
  shape.types[2].features = 1;
  EXPECT_TRUE(ValidateModel(config, shape).ok());
  // A script learns no embeddings.
  shape.types[2].features = 0;
  config.kind = ModelKind::kScript;
  EXPECT_TRUE(ValidateModel(config, shape).ok());
}

}  // namespace
}  // namespace millrace
