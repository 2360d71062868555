// SPDX-License-Identifier: Apache-2.0
#include "common/cli/option_texts.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

bool TakesValue(const CLI::Option& option) {
  return option.get_expected_max() > 0;
}

// "N", "FILE", "in|out". Prefers the description of a validator to the type.
std::string ValueText(const CLI::Option& option) {
  const std::vector<std::string> words = WordsOf(option);
  if (!words.empty()) return absl::StrJoin(words, "|");
  std::string text = option.get_type_name();
  for (const absl::string_view type : {"INT", "UINT", "FLOAT", "TEXT"}) {
    if (absl::StartsWith(text, StrCat(type, ":"))) {
      return text.substr(type.size() + 1);
    }
  }
  if (text == "INT" || text == "UINT") return "N";
  return text == "FLOAT" ? "NUMBER" : text;
}

// In alphabetical order: that of the set differs from run to run.
std::string JoinNames(const std::set<CLI::Option*>& options) {
  std::set<std::string> names;
  for (const CLI::Option* option : options) names.insert(option->get_name());
  return absl::StrJoin(names, " or ");
}

// "Source", or "Source (one of these is required)".
std::string TitleOf(const CLI::App& group) {
  const bool one = group.get_require_option_max() == 1;
  if (!one) return group.get_group();
  return StrCat(group.get_group(), group.get_require_option_min() == 1
                                       ? " (one of these is required)"
                                       : " (at most one of these)");
}

void AddSection(const std::string& title,
                const std::vector<const CLI::Option*>& options,
                std::vector<OptionSection>& sections) {
  if (!options.empty()) sections.push_back({title, options});
}

// Option groups with the same title share a section.
void AddGroups(const CLI::App& command, std::vector<OptionSection>& sections) {
  std::vector<OptionSection> groups;
  std::vector<std::string> names;
  for (const CLI::App* group : OptionGroups(command)) {
    const std::vector<const CLI::Option*> options = group->get_options();
    const auto same = std::find(names.begin(), names.end(), group->get_group());
    if (same == names.end()) {
      names.push_back(group->get_group());
      groups.push_back({TitleOf(*group), options});
    } else {
      std::vector<const CLI::Option*>& all =
          groups[same - names.begin()].options;
      all.insert(all.end(), options.begin(), options.end());
    }
  }
  for (const OptionSection& group : groups) {
    AddSection(group.title, group.options, sections);
  }
}

// The part of a command's own variables that names it: "IMPORT_OGB_".
std::string VariablePrefix(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  return StrCat(VariablePrefix(*command.get_parent()),
                absl::AsciiStrToUpper(
                    absl::StrReplaceAll(command.get_name(), {{"-", "_"}})),
                "_");
}

}  // namespace

std::string NamesText(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(/*positional=*/true);
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  if (!TakesValue(option)) return absl::StrJoin(names, ", ");
  const std::string value = ValueText(option);
  const bool repeatable =
      option.get_expected_max() >= CLI::detail::expected_max_vector_size &&
      !absl::EndsWith(value, "...");
  return StrCat(absl::StrJoin(names, ", "), " ", value,
                repeatable ? " ..." : "");
}

std::string DescriptionText(const CLI::Option& option) {
  std::vector<std::string> remarks;
  if (option.get_required()) remarks.push_back("required");
  if (TakesValue(option) && !option.get_default_str().empty()) {
    remarks.push_back("default: " + option.get_default_str());
  }
  if (!option.get_needs().empty()) {
    remarks.push_back("with " + JoinNames(option.get_needs()));
  }
  if (!option.get_excludes().empty()) {
    remarks.push_back("not with " + JoinNames(option.get_excludes()));
  }
  return StrCat(
      option.get_description(),
      remarks.empty() ? "" : StrCat(" (", absl::StrJoin(remarks, "; "), ")"));
}

std::vector<OptionSection> OptionSections(const CLI::App& command) {
  std::vector<const CLI::Option*> positional, own, general;
  for (const CLI::Option* option : command.get_options()) {
    std::vector<const CLI::Option*>& kind =
        option->get_positional()                 ? positional
        : option->get_group() == kGeneralOptions ? general
                                                 : own;
    kind.push_back(option);
  }
  std::vector<OptionSection> sections;
  AddSection("Arguments", positional, sections);
  AddSection("Options", own, sections);
  AddGroups(command, sections);
  if (command.get_parent() == nullptr) {
    AddSection("General", general, sections);
  }
  return sections;
}

std::string ArgumentsText(const CLI::App& command) {
  std::string text = "[OPTIONS]";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_expected_max() > 1;
    const std::string name =
        option->get_name(/*positional=*/true) + (many ? "..." : "");
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  if (!Subcommands(command).empty()) text += " COMMAND";
  return text;
}

std::string OtherWaysText(const CLI::App& command) {
  if (!Subcommands(command).empty()) {
    return "Options can also come from variables (MILLRACE_...) and from a "
           "file (--config FILE): the --help of each command says how.";
  }
  const std::string prefix = VariablePrefix(command);
  const std::string own = StrCat("MILLRACE_", prefix, "<OPTION>");
  const bool both = !prefix.empty() && !OptionGroups(command).empty();
  return StrCat(
      "Options can also come from variables, ", own,
      both ? " for those below \"Options\" and MILLRACE_<OPTION> for the rest"
           : "",
      both ? " (--tls-ca: MILLRACE_TLS_CA)" : "",
      ", and from a file (--config FILE); the command line wins.");
}

}  // namespace millrace
