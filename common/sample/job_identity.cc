// SPDX-License-Identifier: Apache-2.0
#include "common/sample/job_identity.h"

#include <type_traits>
#include <variant>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "common/sample/job_options.h"

namespace millrace {
namespace {

using Identity = JobOption::Identity;

std::string TextOf(const JobSpec& spec, const JobOption& option) {
  return std::visit(
      [&spec]<typename T>(const T& field) -> std::string {
        if constexpr (std::is_same_v<T, WordField>) {
          return WordOf(field.words, field.get(spec));
        } else if constexpr (std::is_same_v<T, TextField>) {
          return field.format(spec);
        } else if constexpr (std::is_same_v<T, bool JobSpec::*>) {
          return spec.*field ? "yes" : "no";
        } else if constexpr (std::is_same_v<
                                 T, std::vector<std::string> JobSpec::*>) {
          return absl::StrJoin(spec.*field, ",");
        } else {
          return StrCat(spec.*field);
        }
      },
      option.field);
}

// Adds the fields that belong to the text of the method (Identity::kInMethod).
void AppendMethodFields(const JobSpec& spec, std::string& text) {
  const bool ppr = spec.method == SampleMethod::kPpr;
  if (ppr || spec.method == SampleMethod::kWalk) {
    absl::StrAppend(&text, " ", spec.walks, " of ", spec.walk_length, " ",
                    absl::StrJoin(spec.metapath, ","));
  }
  if (ppr) absl::StrAppend(&text, " restart ", spec.restart);
}

}  // namespace

std::map<std::string_view, std::string> JobIdentity(const JobSpec& spec) {
  const bool edge_seeds = spec.seed_kind == SeedKind::kEdge;
  std::map<std::string_view, std::string> texts;
  for (const JobOption& option : JobOptions()) {
    const bool has =
        option.identity == Identity::kAlways ||
        (option.identity == Identity::kEdgeSeeds && edge_seeds) ||
        (option.identity == Identity::kIfChanged && !HasDefault(spec, option));
    if (has) texts[option.option] = TextOf(spec, option);
  }
  AppendMethodFields(spec, texts["method"]);
  return texts;
}

}  // namespace millrace
