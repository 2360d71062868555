// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_rules.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/base/field_error.h"
#include "common/sample/job.h"

namespace millrace {
namespace {

TEST(JobRulesTest, ADefaultJobBreaksNoRule) {
  EXPECT_TRUE(CheckJobOptions(JobSpec()).ok());
}

TEST(JobRulesTest, ErrorsNameFieldValueAndLimit) {
  JobSpec spec;
  spec.batch_size = 0;
  const std::optional<FieldError> error = GetFieldError(CheckJobOptions(spec));
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->problem, FieldError::Problem::kOutOfRange);
  EXPECT_EQ(error->field, "batch_size");
  EXPECT_EQ(error->value, "0");
  EXPECT_EQ(error->limit, "1 to 1073741824");
}

// A job that breaks one rule, and the error as its message says it.
struct BrokenRule {
  std::string error;
  void (*break_it)(JobSpec& spec);
};

void SetWalk(JobSpec& spec) {
  spec.method = SampleMethod::kWalk;
  spec.walks = spec.walk_length = 1;
}
void SetPpr(JobSpec& spec) {
  spec.method = SampleMethod::kPpr;
  spec.walks = spec.walk_length = 1;
}

const BrokenRule kBrokenRules[] = {
    {"fanouts and seed_kind graph cannot be used together",
     [](JobSpec& s) { s.seed_kind = SeedKind::kGraph, s.fanouts = {1}; }},
    {"fanouts and seed_kind graph cannot be used together",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kGraph;
       s.relation_fanouts = {{"a__to__b", {}}, {"b__to__a", {1}}};
     }},
    {"method and seed_kind graph cannot be used together",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kGraph, s.method = SampleMethod::kInduced;
     }},
    {"direction out and seed_kind graph cannot be used together",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kGraph, s.direction = Direction::kOut;
     }},
    {"weighted and seed_kind graph cannot be used together",
     [](JobSpec& s) { s.seed_kind = SeedKind::kGraph, s.weighted = true; }},
    {"temporal and seed_kind graph cannot be used together",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kGraph, s.temporal = TemporalStrategy::kUniform;
     }},
    {"train_graph and seed_kind graph cannot be used together",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kGraph, s.train_graph = "train";
     }},
    {"seed_kind edge and method walk cannot be used together",
     [](JobSpec& s) { SetWalk(s), s.seed_kind = SeedKind::kEdge; }},
    {"negatives needs seed_kind edge",
     [](JobSpec& s) { s.negatives.mode = NegativeMode::kInBatch; }},
    {"negatives needs seed_kind edge",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kGraph, s.negatives.mode = NegativeMode::kBinary;
     }},
    {"exclude needs seed_kind edge",
     [](JobSpec& s) { s.exclude = ExcludeSeedEdges::kSelf; }},
    {"negatives shared and disjoint cannot be used together",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kEdge;
       s.negatives.mode = NegativeMode::kShared;
       s.disjoint = true;
     }},
    {"negatives shared and temporal cannot be used together",
     [](JobSpec& s) {
       s.seed_kind = SeedKind::kEdge;
       s.negatives.mode = NegativeMode::kShared;
       s.temporal = TemporalStrategy::kUniform;
     }},
    {"replace and method walk or ppr cannot be used together",
     [](JobSpec& s) { SetWalk(s), s.replace = true; }},
    {"replace and method walk or ppr cannot be used together",
     [](JobSpec& s) { SetPpr(s), s.replace = true; }},
    {"temporal and method walk or ppr cannot be used together",
     [](JobSpec& s) { SetWalk(s), s.temporal = TemporalStrategy::kUniform; }},
    {"temporal and method walk or ppr cannot be used together",
     [](JobSpec& s) { SetPpr(s), s.temporal = TemporalStrategy::kUniform; }},
    {"fanouts and method walk cannot be used together",
     [](JobSpec& s) { SetWalk(s), s.fanouts = {1}; }},
    {"disjoint and method ppr cannot be used together",
     [](JobSpec& s) { SetPpr(s), s.disjoint = true; }},
    {"weighted and method labor cannot be used together",
     [](JobSpec& s) { s.method = SampleMethod::kLabor, s.weighted = true; }},
    {"weighted and walk_p cannot be used together",
     [](JobSpec& s) { SetWalk(s), s.weighted = true, s.walk_p = 2; }},
    {"weighted and walk_q cannot be used together",
     [](JobSpec& s) { SetWalk(s), s.weighted = true, s.walk_q = 2; }},
    {"weighted and temporal last cannot be used together",
     [](JobSpec& s) {
       s.weighted = true, s.temporal = TemporalStrategy::kLast;
     }},
    {"temporal last and replace cannot be used together",
     [](JobSpec& s) {
       s.temporal = TemporalStrategy::kLast, s.replace = true;
     }},
    {"method labor and replace cannot be used together",
     [](JobSpec& s) { s.method = SampleMethod::kLabor, s.replace = true; }},
    {"method labor and temporal last cannot be used together", [](JobSpec& s) {
       s.method = SampleMethod::kLabor, s.temporal = TemporalStrategy::kLast;
     }}};

TEST(JobRulesTest, EachRuleRefusesAJobThatBreaksOnlyIt) {
  for (const BrokenRule& rule : kBrokenRules) {
    JobSpec spec;
    rule.break_it(spec);
    EXPECT_EQ(CheckJobOptions(spec).message(), rule.error);
  }
}

TEST(JobRulesTest, JobsThatAreCloseToARuleBreakNone) {
  for (void (*set)(JobSpec&) :
       {+[](JobSpec& s) { s.seed_kind = SeedKind::kGraph; },
        +[](JobSpec& s) {
          s.seed_kind = SeedKind::kGraph;
          s.relation_fanouts = {{"a__to__b", {}}};
        },
        +[](JobSpec& s) {
          s.seed_kind = SeedKind::kEdge;
          s.negatives.mode = NegativeMode::kTriplet;
          s.disjoint = true;
          s.exclude = ExcludeSeedEdges::kReverse;
        },
        +[](JobSpec& s) { SetPpr(s), s.fanouts = {2}, s.weighted = true; },
        +[](JobSpec& s) { SetWalk(s), s.disjoint = s.weighted = true; },
        +[](JobSpec& s) {
          s.replace = s.weighted = true;
          s.temporal = TemporalStrategy::kUniform;
        },
        +[](JobSpec& s) {
          s.method = SampleMethod::kLabor;
          s.temporal = TemporalStrategy::kUniform;
        }}) {
    JobSpec spec;
    set(spec);
    EXPECT_EQ(CheckJobOptions(spec).message(), "");
  }
}

}  // namespace
}  // namespace millrace
