// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::ElementsAre;

// Checkpoints of versions that had fewer fields must stay good.
TEST(JobIdentityTest, OfADefaultJobStays) {
  const auto identity = JobIdentity(JobSpec());
  std::vector<std::string> texts;
  for (const auto& [option, text] : identity) {
    texts.push_back(std::string(option) + "=" + text);
  }
  EXPECT_THAT(texts, ElementsAre("batch-size=1024", "direction=in",
                                 "disjoint=no", "drop-last=no",
                                 "fanouts=", "method=uniform", "replace=no",
                                 "seed=1", "seed-order=global", "seeds=node",
                                 "shuffle=yes", "split=train", "temporal=none",
                                 "train-graph=full", "type=", "weighted=no"));
}

TEST(JobIdentityTest, TellsJobsApart) {
  JobSpec spec;
  spec.method = SampleMethod::kPpr;
  spec.walks = 3;
  spec.walk_length = 4;
  spec.metapath = {"a__x__a"};
  EXPECT_EQ(JobIdentity(spec)["method"], "ppr 3 of 4 a__x__a restart 0.15");
  spec.method = SampleMethod::kWalk;
  spec.walk_q = 0.5;
  EXPECT_EQ(JobIdentity(spec)["method"], "walk 3 of 4 a__x__a");
  EXPECT_EQ(JobIdentity(spec)["walk-q"], "0.5");
  EXPECT_FALSE(JobIdentity(spec).contains("walk-p"));
  spec.seed_kind = SeedKind::kEdge;
  spec.negatives = {NegativeMode::kBinary, 1.5};
  spec.relation_fanouts["a__x__a"] = {1, -1};
  spec.train_graph = "train";
  EXPECT_EQ(JobIdentity(spec)["negatives"], "binary:1.5");
  EXPECT_EQ(JobIdentity(spec)["exclude-seed-edges"], "none");
  EXPECT_EQ(JobIdentity(spec)["fanouts"], " a__x__a=1,-1");
  EXPECT_EQ(JobIdentity(spec)["train-graph"], "induced:train");
}

}  // namespace
}  // namespace millrace
