// SPDX-License-Identifier: Apache-2.0
#include "client/train/checkpoint_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace millrace::testing {
namespace {

using ::testing::IsSupersetOf;

class CheckpointIdentityTest : public ::testing::Test {
 protected:
  CheckpointIdentityTest() {
    ModelConfig config;
    config.in = 6;
    config.out = 4;
    config.hidden = 8;
    model_ = Model::Create(config).value();
    inputs_.model = config;
    plan_.dataset = "data";
    plan_.seeds_name = "paper";
    plan_.splits = {{"split train of paper", "fingerprint"}};
  }

  RunIdentity Identity() const {
    return CheckpointIdentity(plan_, inputs_, *model_, state_);
  }

  RunPlan plan_;
  RunInputs inputs_;
  RunState state_;
  std::unique_ptr<Model> model_;
};

TEST_F(CheckpointIdentityTest, AddsWhatTheGraphSays) {
  const RunIdentity identity = Identity();
  EXPECT_THAT(identity,
              IsSupersetOf(RunIdentity{{"dataset fingerprint", "data"},
                                       {"split train of paper", "fingerprint"},
                                       {"--type", "paper"},
                                       {"--seeds-file", "none"},
                                       {"--model", "sage"},
                                       {"features", "6"},
                                       {"classes", "4"},
                                       {"--metric", "accuracy"},
                                       {"--order", "none"},
                                       {"--valid-split", "valid"}}));
  EXPECT_FALSE(identity.contains("edge types"));
  EXPECT_FALSE(identity.contains("--eval-negatives"));
}

TEST_F(CheckpointIdentityTest, EvaluationAloneMayUseAnotherMetric) {
  plan_.options.valid_split = "fold";
  EXPECT_EQ(Identity()["--valid-split"], "fold");
  plan_.options.epochs = 0;
  const RunIdentity identity = Identity();
  for (const char* key :
       {"--metric", "--order", "--valid-split", "--eval-negatives"}) {
    EXPECT_FALSE(identity.contains(key)) << key;
  }
  EXPECT_TRUE(identity.contains("features"));
}

TEST_F(CheckpointIdentityTest, LinksHaveTypesAndNegatives) {
  plan_.options.task.kind = TaskKind::kLink;
  inputs_.model.edge_types = 3;
  EXPECT_THAT(Identity(),
              IsSupersetOf(RunIdentity{{"edge types", "3"},
                                       {"--eval-negatives", "default, full"}}));
  plan_.options.epochs = 0;
  EXPECT_EQ(Identity()["edge types"], "3");
  EXPECT_FALSE(Identity().contains("--eval-negatives"));
}

TEST_F(CheckpointIdentityTest, ListedSeedsAreTheirNumberAndChecksum) {
  plan_.options.seeds.emplace().ids = {5, 6, 7};
  plan_.seeds_checksum = 0xabc;
  EXPECT_EQ(Identity()["--seeds-file"], "3 rows of checksum 0000000000000abc");
}

// Later epochs may have another order.
TEST_F(CheckpointIdentityTest, AnOrderCountsForTheEpochsThatHaveBegun) {
  inputs_.order.emplace().checksums = {1, 2, 3};
  const auto up_to = [this](uint32_t epoch, uint32_t next_batch) {
    state_.epoch = epoch;
    state_.next_batch = next_batch;
    return Identity()["--order"];
  };
  const auto ends = [](const std::string& epoch) {
    return ::testing::EndsWith(" up to epoch " + epoch);
  };
  EXPECT_THAT(up_to(0, 0), ends("0"));
  EXPECT_THAT(up_to(0, 1), ends("1"));
  EXPECT_THAT(up_to(1, 0), ends("1"));
  EXPECT_THAT(up_to(1, 2), ends("2"));
  EXPECT_EQ(up_to(0, 5), up_to(1, 0));
  EXPECT_NE(up_to(1, 1), up_to(1, 0));
  EXPECT_EQ(up_to(1, 0).size(), 16 + std::string(" up to epoch 1").size());
}

}  // namespace
}  // namespace millrace::testing
