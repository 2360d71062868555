// SPDX-License-Identifier: Apache-2.0
// The rules by which a neighbour list is drawn from, in one table. It says
// which jobs draw by a rule and what the rule needs; the exclusions among
// options (job_rules.h), the checks for columns (resolve_job.h, draw/draw.h)
// and what a draw reads of lists (draw/slot_picker.h) are derived from it. The
// picks themselves are cases of SlotPicker::PickFrom(). docs/extending.md says
// how to add a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "common/sample/job.h"

namespace millrace {

// docs/determinism.md, section 3, has the definitions. The numbers are those of
// ExpandRequest.Rule in sampler.proto.
enum class DrawRule : uint8_t {
  kUniform = 0,
  kWeighted = 1,
  kLabor = 2,
  kLast = 3,   // no draw: the last slots
  kAmong = 4,  // no draw: the slots whose neighbour is one of Frontier::among
};

// What random words are for, which is part of their key (draw/draw.h);
// docs/determinism.md, section 2.
enum class Purpose : uint32_t {
  kShuffle = 0,
  kNeighbor = 1,
  kWalk = 2,
  kNegative = 3,
  kInterleave = 4,
  kLabor = 5,
  kStop = 6,
};

// An option that makes a job draw by a rule.
struct RuleChoice {
  // The field of JobSpec, and its value where that matters, as in FieldError.
  std::string_view field = {};
  std::string_view value = {};
  // Returns true if the job makes this choice.
  bool (*is_made)(const JobSpec& spec) = nullptr;
};

struct DrawRuleInfo {
  DrawRule rule;
  // On the wire, RULE_ and this in capitals.
  std::string_view name;
  // Excludes the choices of other rules. Empty if no option chooses the rule:
  // it is the default, or a method names it for some of its draws.
  RuleChoice choice = {};
  // Whether it can draw with replacement. If not, `choice` excludes `replace`.
  bool takes_replace = false;

  // Columns of NeighborLists that the picks depend on. A job or draw is refused
  // if the store lacks one, and for draws from a part of a list, the entries of
  // that part are copied.
  bool reads_neighbors = false;     // indices
  bool reads_weight_sums = false;   // weight_sum
  bool reads_original_ids = false;  // neighbor_original_id

  // Whether the columns are loaded into the CPU's caches a few lists ahead,
  // which is worth it only for rules that read them from end to end.
  bool prefetches = false;
  // Purpose of its random words if the rule has its own. Other rules draw with
  // those of the hop: kWalk in a walk, else kNeighbor.
  std::optional<Purpose> own_purpose = {};
};

// One row per rule, in the order of DrawRule.
inline constexpr DrawRuleInfo kDrawRules[] = {
    {.rule = DrawRule::kUniform, .name = "uniform", .takes_replace = true},
    {.rule = DrawRule::kWeighted,
     .name = "weighted",
     .choice = {"weighted", "", [](const JobSpec& s) { return s.weighted; }},
     .takes_replace = true,
     .reads_weight_sums = true},
    {.rule = DrawRule::kLabor,
     .name = "labor",
     .choice = {"method", "labor",
                [](const JobSpec& s) {
                  return s.method == SampleMethod::kLabor;
                }},
     .reads_original_ids = true,
     .prefetches = true,
     .own_purpose = Purpose::kLabor},
    {.rule = DrawRule::kLast,
     .name = "last",
     .choice = {"temporal", "last",
                [](const JobSpec& s) {
                  return s.temporal == TemporalStrategy::kLast;
                }}},
    {.rule = DrawRule::kAmong, .name = "among", .reads_neighbors = true},
};

constexpr const DrawRuleInfo& InfoOf(DrawRule rule) {
  return kDrawRules[static_cast<size_t>(rule)];
}

static_assert([] {
  for (size_t i = 0; i < std::size(kDrawRules); ++i) {
    if (static_cast<size_t>(kDrawRules[i].rule) != i) return false;
  }
  return true;
}());

// Returns true if one of the job's options selects the rule.
inline bool Chooses(const JobSpec& spec, const DrawRuleInfo& rule) {
  return rule.choice.is_made != nullptr && rule.choice.is_made(spec);
}

// The rule by which a job draws neighbours. A checked job chooses at most one.
inline DrawRule RuleOf(const JobSpec& spec) {
  for (const DrawRuleInfo& rule : kDrawRules) {
    if (Chooses(spec, rule)) return rule.rule;
  }
  return DrawRule::kUniform;
}

}  // namespace millrace
