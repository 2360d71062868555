// SPDX-License-Identifier: Apache-2.0
#include "client/field_words.h"

#include <utility>

#include "absl/strings/str_replace.h"
#include "common/base/strings.h"
#include "common/sample/job_options.h"

namespace millrace {
namespace {

// Fields besides those of jobs whose words do not follow from their names.
constexpr std::pair<std::string_view, std::string_view> kFieldWords[] = {
    {"aggregation", "aggr"},
    {"average_degree", "avg-degree"},
    {"bases", "num-bases"},
    {"node_counts", "num-nodes"},
    {"predict_embeddings", "output embeddings"},
    {"seeds", "seeds-file"},
};

}  // namespace

std::string WordOfField(std::string_view field) {
  if (const JobOption* option = FindJobOption(field); option != nullptr) {
    return std::string(option->option);
  }
  for (const auto& [name, word] : kFieldWords) {
    if (name == field) return std::string(word);
  }
  return absl::StrReplaceAll(AbslView(field), {{"_", "-"}});
}

std::string FieldOfWord(std::string_view word) {
  for (const JobOption& option : JobOptions()) {
    if (option.option == word) return std::string(option.name);
  }
  for (const auto& [name, other] : kFieldWords) {
    if (other == word) return std::string(name);
  }
  return absl::StrReplaceAll(AbslView(word), {{"-", "_"}});
}

}  // namespace millrace
