// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_rules.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "common/base/field_error.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/draw_rule.h"
#include "common/sample/job_options.h"

namespace millrace {
namespace {

using Problem = FieldError::Problem;

// ---- Combinations of options ----

// A field, and its value where that matters.
struct Choice {
  std::string_view field;
  std::string_view value = {};
};

absl::Status Refuse(Problem problem, const Choice& choice,
                    const Choice& other) {
  return InvalidField({.problem = problem,
                       .field = std::string(choice.field),
                       .value = std::string(choice.value),
                       .other_field = std::string(other.field),
                       .other_value = std::string(other.value)});
}

// A rule that a choice conflicts with another or requires it.
struct Rule {
  Problem problem;
  Choice choice;
  Choice other;
  bool (*is_broken)(const JobSpec& spec);
};

bool IsTemporal(const JobSpec& s) {
  return s.temporal != TemporalStrategy::kNone;
}
bool IsWalk(const JobSpec& s) { return s.method == SampleMethod::kWalk; }
bool IsPpr(const JobSpec& s) { return s.method == SampleMethod::kPpr; }
bool IsEdge(const JobSpec& s) { return s.seed_kind == SeedKind::kEdge; }
bool IsGraph(const JobSpec& s) { return s.seed_kind == SeedKind::kGraph; }
bool HasFanouts(const JobSpec& s) {
  return !s.fanouts.empty() ||
         std::any_of(s.relation_fanouts.begin(), s.relation_fanouts.end(),
                     [](const auto& entry) { return !entry.second.empty(); });
}
bool IsShared(const JobSpec& s) {
  return s.negatives.mode == NegativeMode::kShared;
}

using enum FieldError::Problem;

constexpr Rule kRules[] = {
    {kConflict,
     {"fanouts"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && HasFanouts(s); }},
    {kConflict,
     {"method"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) {
       return IsGraph(s) && s.method != SampleMethod::kUniform;
     }},
    {kConflict,
     {"direction", "out"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) {
       return IsGraph(s) && s.direction == Direction::kOut;
     }},
    {kConflict,
     {"weighted"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && s.weighted; }},
    {kConflict,
     {"temporal"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && IsTemporal(s); }},
    {kConflict,
     {"train_graph"},
     {"seed_kind", "graph"},
     [](const JobSpec& s) { return IsGraph(s) && !s.train_graph.empty(); }},
    {kConflict,
     {"seed_kind", "edge"},
     {"method", "walk"},
     [](const JobSpec& s) { return IsEdge(s) && IsWalk(s); }},
    {kNeeds,
     {"negatives"},
     {"seed_kind", "edge"},
     [](const JobSpec& s) {
       return !IsEdge(s) && s.negatives.mode != NegativeMode::kNone;
     }},
    {kNeeds,
     {"exclude"},
     {"seed_kind", "edge"},
     [](const JobSpec& s) {
       return !IsEdge(s) && s.exclude != ExcludeSeedEdges::kNone;
     }},
    {kConflict,
     {"negatives", "shared"},
     {"disjoint"},
     [](const JobSpec& s) { return IsShared(s) && s.disjoint; }},
    {kConflict,
     {"negatives", "shared"},
     {"temporal"},
     [](const JobSpec& s) { return IsShared(s) && IsTemporal(s); }},
    {kConflict,
     {"replace"},
     {"method", "walk or ppr"},
     [](const JobSpec& s) { return s.replace && (IsWalk(s) || IsPpr(s)); }},
    {kConflict,
     {"temporal"},
     {"method", "walk or ppr"},
     [](const JobSpec& s) { return IsTemporal(s) && (IsWalk(s) || IsPpr(s)); }},
    {kConflict,
     {"fanouts"},
     {"method", "walk"},
     [](const JobSpec& s) { return IsWalk(s) && HasFanouts(s); }},
    {kConflict,
     {"disjoint"},
     {"method", "ppr"},
     [](const JobSpec& s) { return s.disjoint && IsPpr(s); }},
    {kConflict,
     {"weighted"},
     {"walk_p"},
     [](const JobSpec& s) { return s.weighted && s.walk_p != 1; }},
    {kConflict,
     {"weighted"},
     {"walk_q"},
     [](const JobSpec& s) { return s.weighted && s.walk_q != 1; }},
};

absl::Status CheckRules(const JobSpec& spec) {
  for (const Rule& rule : kRules) {
    if (!rule.is_broken(spec)) continue;
    return Refuse(rule.problem, rule.choice, rule.other);
  }
  return absl::OkStatus();
}

Choice ChoiceOf(const DrawRuleInfo& rule) {
  return {rule.choice.field, rule.choice.value};
}

// Checks that the job chooses at most one rule of drawing, and draws with
// replacement only if that rule can.
absl::Status CheckDrawRules(const JobSpec& spec) {
  const DrawRuleInfo* chosen = nullptr;
  for (const DrawRuleInfo& rule : kDrawRules) {
    if (!Chooses(spec, rule)) continue;
    if (chosen != nullptr) {
      return Refuse(kConflict, ChoiceOf(*chosen), ChoiceOf(rule));
    }
    chosen = &rule;
  }
  if (chosen == nullptr || chosen->takes_replace || !spec.replace) {
    return absl::OkStatus();
  }
  return Refuse(kConflict, ChoiceOf(*chosen), {"replace"});
}

// ---- Single fields ----

absl::Status CheckMethod(const JobSpec& spec, const JobOption& option) {
  if (option.ignored_by_others || HasDefault(spec, option)) {
    return absl::OkStatus();
  }
  return NeedsMethod(option);
}

std::string NumberText(double number) {
  return number >= std::numeric_limits<int64_t>::min() &&
                 number == static_cast<double>(static_cast<int64_t>(number))
             ? StrCat(static_cast<int64_t>(number))
             : StrCat(number);
}

// Checks the limits of a number.
absl::Status CheckLimits(const JobSpec& spec, const JobOption& option) {
  return std::visit(
      [&]<typename T>(const T& field) -> absl::Status {
        if constexpr (std::is_member_object_pointer_v<T>) {
          using Value = std::remove_cvref_t<decltype(spec.*field)>;
          if constexpr (std::is_arithmetic_v<Value>) {
            const auto value = static_cast<double>(spec.*field);
            if (value >= option.min && value <= option.max) {
              return absl::OkStatus();
            }
            return InvalidField({.problem = Problem::kOutOfRange,
                                 .field = std::string(option.name),
                                 .value = StrCat(spec.*field),
                                 .limit = StrCat(NumberText(option.min), " to ",
                                                 NumberText(option.max))});
          }
        }
        return absl::OkStatus();
      },
      option.field);
}

}  // namespace

absl::Status CheckJobOptions(const JobSpec& spec) {
  for (const JobOption& option : JobOptions()) {
    MILLRACE_RETURN_IF_ERROR(Reads(spec.method, option)
                                 ? CheckLimits(spec, option)
                                 : CheckMethod(spec, option));
  }
  MILLRACE_RETURN_IF_ERROR(CheckRules(spec));
  return CheckDrawRules(spec);
}

}  // namespace millrace
