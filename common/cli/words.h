// SPDX-License-Identifier: Apache-2.0
// Words that a user may choose from: options, commands, values.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// The option for a field (see common/base/field_error.h): "--batch-size" for
// "batch_size".
std::string OptionName(std::string_view field);

// How many edits turn one word into the other. An edit inserts, deletes or
// replaces a character, or swaps two neighbours.
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate that `word` may be a misspelling of: one that begins with it,
// or else the first of those with the fewest edits, at most one per three
// characters. Empty if there is none. Case matters.
std::string NearestWord(std::string_view word,
                        const std::vector<std::string>& candidates);

// "; did you mean NEAREST?", or empty if no candidate is near.
std::string DidYouMean(std::string_view word,
                       const std::vector<std::string>& candidates);

// For CLI::Option::check: one of these words. --help and completion show them.
CLI::Validator OneOf(std::vector<std::string> words);

// OneOf() with the keys of a map from words to values.
template <typename Value>
CLI::Validator OneOf(const std::map<std::string, Value>& values) {
  std::vector<std::string> words;
  for (const auto& [word, value] : values) words.push_back(word);
  return OneOf(std::move(words));
}

// For CLI::Option::transform: removes the blanks around the items of a
// comma-separated list such as "25, 10". FinishOptions() adds it to options
// that have a delimiter.
CLI::Validator CommaList();

// The words that OneOf() allows for an option; empty for other options.
std::vector<std::string> WordsOf(const CLI::Option& option);

}  // namespace millrace
