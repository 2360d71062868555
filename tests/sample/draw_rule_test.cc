// SPDX-License-Identifier: Apache-2.0
#include "common/sample/draw_rule.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/base/field_error.h"
#include "common/sample/job_options.h"
#include "common/sample/job_rules.h"
#include "common/sample/resolve_job.h"

namespace millrace {
namespace {

TEST(DrawRuleTest, JobsDrawByTheRuleThatTheyChoose) {
  const std::pair<DrawRule, void (*)(JobSpec&)> jobs[] = {
      {DrawRule::kUniform, [](JobSpec&) {}},
      {DrawRule::kUniform, [](JobSpec& s) { s.replace = true; }},
      {DrawRule::kUniform,
       [](JobSpec& s) { s.temporal = TemporalStrategy::kUniform; }},
      {DrawRule::kUniform, [](JobSpec& s) { s.method = SampleMethod::kWalk; }},
      {DrawRule::kUniform, [](JobSpec& s) { s.method = SampleMethod::kPpr; }},
      {DrawRule::kUniform,
       [](JobSpec& s) { s.method = SampleMethod::kInduced; }},
      {DrawRule::kWeighted, [](JobSpec& s) { s.weighted = true; }},
      {DrawRule::kWeighted,
       [](JobSpec& s) {
         s.weighted = true;
         s.method = SampleMethod::kPpr;
       }},
      {DrawRule::kWeighted,
       [](JobSpec& s) {
         s.weighted = true;
         s.temporal = TemporalStrategy::kUniform;
       }},
      {DrawRule::kLabor, [](JobSpec& s) { s.method = SampleMethod::kLabor; }},
      {DrawRule::kLast,
       [](JobSpec& s) { s.temporal = TemporalStrategy::kLast; }}};
  for (const auto& [rule, set] : jobs) {
    JobSpec spec;
    set(spec);
    EXPECT_EQ(InfoOf(RuleOf(spec)).name, InfoOf(rule).name);
  }
}

// Makes a choice as a user does, by an option and its word.
void Choose(const RuleChoice& choice, JobSpec& spec) {
  const JobOption* option = FindJobOption(choice.field);
  ASSERT_NE(option, nullptr) << choice.field;
  if (const auto* flag = std::get_if<bool JobSpec::*>(&option->field)) {
    EXPECT_EQ(choice.value, "");
    spec.** flag = true;
    return;
  }
  const auto* words = std::get_if<WordField>(&option->field);
  ASSERT_NE(words, nullptr) << choice.field;
  for (const OptionWord& word : words->words) {
    if (word.word == choice.value) words->set(spec, word.number);
  }
}

JobSpec JobChoosing(const DrawRuleInfo& rule) {
  JobSpec spec;
  spec.fanouts = {2};
  if (rule.choice.is_made != nullptr) Choose(rule.choice, spec);
  return spec;
}

TEST(DrawRuleTest, AChoiceIsAnOptionAndItsWord) {
  for (const DrawRuleInfo& rule : kDrawRules) {
    const JobSpec spec = JobChoosing(rule);
    EXPECT_EQ(Chooses(spec, rule), !rule.choice.field.empty()) << rule.name;
    if (!Chooses(spec, rule)) continue;
    EXPECT_EQ(RuleOf(spec), rule.rule) << rule.name;
    EXPECT_EQ(CheckJobOptions(spec), absl::OkStatus()) << rule.name;
    EXPECT_FALSE(Chooses(JobSpec(), rule)) << rule.name;
  }
}

// The choice as a message says it.
std::string TextOf(const RuleChoice& choice) {
  std::string text(choice.field);
  if (!choice.value.empty()) text += " " + std::string(choice.value);
  return text;
}

TEST(DrawRuleTest, ChoicesOfTwoRulesExcludeEachOther) {
  for (const DrawRuleInfo& rule : kDrawRules) {
    for (const DrawRuleInfo& other : kDrawRules) {
      if (rule.rule >= other.rule || rule.choice.field.empty() ||
          other.choice.field.empty() ||
          rule.choice.field == other.choice.field) {
        continue;  // two values of one option exclude each other anyway
      }
      JobSpec spec = JobChoosing(rule);
      Choose(other.choice, spec);
      EXPECT_EQ(CheckJobOptions(spec).message(),
                TextOf(rule.choice) + " and " + TextOf(other.choice) +
                    " cannot be used together");
    }
  }
}

TEST(DrawRuleTest, OnlySomeRulesTakeReplace) {
  for (const DrawRuleInfo& rule : kDrawRules) {
    if (rule.choice.field.empty()) continue;
    JobSpec spec = JobChoosing(rule);
    spec.replace = true;
    EXPECT_EQ(CheckJobOptions(spec).message(),
              rule.takes_replace ? ""
                                 : TextOf(rule.choice) +
                                       " and replace cannot be used together");
  }
}

// A store of one relation, which has times.
Manifest StoreWith(bool weights, bool original_ids) {
  Manifest manifest;
  manifest.partitioning.method = "random";
  manifest.neighbor_original_ids = original_ids;
  manifest.schema.node_types = {{.name = "node", .count = 3}};
  manifest.schema.relations = {{.src = 0,
                                .name = "to",
                                .dst = 0,
                                .has_in = true,
                                .has_weight = weights,
                                .time = ListTime::kEdge}};
  manifest.books = {PartitionBook({0, 3})};
  return manifest;
}

void ExpectRefused(const DrawRuleInfo& rule, const Manifest& manifest,
                   bool refused, const std::string& reason) {
  const absl::Status status = ResolveJob(JobChoosing(rule), manifest).status();
  EXPECT_EQ(absl::IsFailedPrecondition(status), refused) << status;
  EXPECT_EQ(status.ok(), !refused) << status;
  const std::optional<FieldError> error = GetFieldError(status);
  if (!refused || !error.has_value()) return;
  EXPECT_EQ(error->field, rule.choice.field);
  EXPECT_EQ(error->value, rule.choice.value);
  EXPECT_EQ(ReasonOf(status), reason);
}

TEST(DrawRuleTest, StoresWithoutAColumnThatTheRuleReadsAreRefused) {
  for (const DrawRuleInfo& rule : kDrawRules) {
    ExpectRefused(rule, StoreWith(true, true), false, "");
    ExpectRefused(rule, StoreWith(false, true), rule.reads_weight_sums,
                  "no_weights");
    ExpectRefused(rule, StoreWith(true, false), rule.reads_original_ids,
                  "no_neighbor_ids");
  }
}

}  // namespace
}  // namespace millrace
