// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
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

TEST(JobIdentityTest, EachOptionIsInIt) {
  struct Case {
    void (*change)(JobSpec& spec);
    std::string option;
    std::string text;
  };
  for (const Case& example : std::vector<Case>{
           {[](JobSpec& s) { s.seed_kind = SeedKind::kGraph; }, "seeds",
            "graph"},
           {[](JobSpec& s) { s.split = "valid"; }, "split", "valid"},
           {[](JobSpec& s) { s.seed_type = "paper"; }, "type", "paper"},
           {[](JobSpec& s) { s.batch_size = 7; }, "batch-size", "7"},
           {[](JobSpec& s) { s.seed = ~uint64_t{0}; }, "seed",
            "18446744073709551615"},
           {[](JobSpec& s) { s.shuffle = false; }, "shuffle", "no"},
           {[](JobSpec& s) { s.seed_order = SeedOrder::kLocal; }, "seed-order",
            "local"},
           {[](JobSpec& s) { s.drop_last = true; }, "drop-last", "yes"},
           {[](JobSpec& s) {
              s.fanouts = {3, -1};
            },
            "fanouts", "3,-1"},
           {[](JobSpec& s) { s.method = SampleMethod::kLabor; }, "method",
            "labor"},
           {[](JobSpec& s) { s.direction = Direction::kOut; }, "direction",
            "out"},
           {[](JobSpec& s) { s.replace = true; }, "replace", "yes"},
           {[](JobSpec& s) { s.disjoint = true; }, "disjoint", "yes"},
           {[](JobSpec& s) { s.weighted = true; }, "weighted", "yes"},
           {[](JobSpec& s) { s.temporal = TemporalStrategy::kLast; },
            "temporal", "last"},
           {[](JobSpec& s) { s.train_graph = "t"; }, "train-graph",
            "induced:t"},
           {[](JobSpec& s) { s.walk_p = 2; }, "walk-p", "2"},
           {[](JobSpec& s) { s.walk_q = 0.25; }, "walk-q", "0.25"}}) {
    JobSpec spec;
    example.change(spec);
    auto identity = JobIdentity(spec);
    EXPECT_EQ(identity[example.option], example.text) << example.option;
    // Nothing else changes.
    auto before = JobIdentity(JobSpec());
    identity.erase(example.option);
    before.erase(example.option);
    EXPECT_EQ(identity, before) << example.option;
  }
  JobSpec spec;
  spec.seed_kind = SeedKind::kEdge;
  spec.exclude = ExcludeSeedEdges::kReverse;
  EXPECT_EQ(JobIdentity(spec)["exclude-seed-edges"], "reverse");
  EXPECT_EQ(JobIdentity(spec)["negatives"], "none");
  spec.method = SampleMethod::kPpr;
  spec.restart = 0.5;
  spec.metapath = {"a", "b"};
  spec.walks = 2;
  spec.walk_length = 9;
  EXPECT_EQ(JobIdentity(spec)["method"], "ppr 2 of 9 a,b restart 0.5");
}

}  // namespace
}  // namespace millrace
