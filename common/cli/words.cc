// SPDX-License-Identifier: Apache-2.0
#include "common/cli/words.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

constexpr size_t kCharactersPerEdit = 3;
constexpr size_t kMinPrefix = 3;

}  // namespace

std::string OptionName(std::string_view field) {
  return StrCat("--", absl::StrReplaceAll(AbslView(field), {{"_", "-"}}));
}

size_t EditDistance(std::string_view a, std::string_view b) {
  // Optimal string alignment, keeping only three rows of the table.
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string NearestWord(std::string_view word,
                        const std::vector<std::string>& candidates) {
  std::string nearest;
  // one more than allowed
  size_t fewest = word.size() / kCharactersPerEdit + 1;
  for (const std::string& candidate : candidates) {
    if (word.size() >= kMinPrefix && candidate.starts_with(word)) {
      return candidate;
    }
    const size_t edits = EditDistance(word, candidate);
    if (edits >= fewest) continue;
    fewest = edits;
    nearest = candidate;
  }
  return nearest;
}

std::string DidYouMean(std::string_view word,
                       const std::vector<std::string>& candidates) {
  const std::string nearest = NearestWord(word, candidates);
  return nearest.empty() ? "" : StrCat("; did you mean ", nearest, "?");
}

CLI::Validator OneOf(std::vector<std::string> words) {
  std::string description = StrCat("{", absl::StrJoin(words, ","), "}");
  return CLI::Validator(
      [words = std::move(words)](const std::string& word) -> std::string {
        if (std::find(words.begin(), words.end(), word) != words.end()) {
          return "";
        }
        return StrCat("\"", word, "\" is not one of ",
                      absl::StrJoin(words, ", "), DidYouMean(word, words));
      },
      std::move(description));
}

CLI::Validator CommaList() {
  return CLI::Validator(
      [](std::string& list) -> std::string {
        std::vector<absl::string_view> items = absl::StrSplit(list, ',');
        for (absl::string_view& item : items) {
          item = absl::StripAsciiWhitespace(item);
        }
        list = absl::StrJoin(items, ",");
        return "";
      },
      "");
}

std::vector<std::string> WordsOf(const CLI::Option& option) {
  // The type name includes the validator's description, "{WORD,WORD}".
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  const size_t close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return absl::StrSplit(type.substr(open + 1, close - open - 1), ',');
}

}  // namespace millrace
