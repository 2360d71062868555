// SPDX-License-Identifier: Apache-2.0
#include "common/cli/option_sources.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/log.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

using Names = std::set<std::string>;

constexpr char kPrefix[] = "MILLRACE_";
constexpr char kConfigVariable[] = "MILLRACE_CONFIG";

// Valid variables of one program that look like misspellings of another
// program's.
const Names kOthers = {"MILLRACE_METRIC", "MILLRACE_METRICS"};

std::string AsVariable(const std::string& name) {
  return absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
}

// The long options on the command line, without dashes.
Names GivenOptions(int argc, char** argv) {
  Names given;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--")) continue;
    given.emplace(argument.substr(0, argument.find('=')));
  }
  return given;
}

bool AnyIsGiven(const std::vector<const CLI::Option*>& options,
                const Names& given) {
  return std::any_of(
      options.begin(), options.end(), [&given](const CLI::Option* option) {
        const std::vector<std::string>& names = option->get_lnames();
        return std::any_of(
            names.begin(), names.end(),
            [&given](const std::string& name) { return given.contains(name); });
      });
}

// `owner` is `command` or one of its option groups.
void NameVariables(const CLI::App& command, CLI::App& owner,
                   const Names& given) {
  for (CLI::Option* option : owner.get_options()) {
    const bool decided = AnyIsGiven(Rivals(command, *option), given);
    option->envname(decided ? "" : VariableOf(owner, *option));
  }
  for (CLI::App* group : OptionGroups(owner)) {
    NameVariables(command, *group, given);
  }
}

// The options of a command are bound to variables only when the command is
// about to be parsed. Otherwise CLI11 would give a variable's value to the
// options of that name in all subcommands, chosen or not.
void ReadVariables(CLI::App& command, const Names& given) {
  command.preparse_callback(
      [&command, given](size_t) { NameVariables(command, command, given); });
  for (CLI::App* sub : Subcommands(command)) ReadVariables(*sub, given);
}

struct Variable {
  std::string name;
  std::string without_command;  // its name if the option were shared
};

// Appends the variables of a command's own options and of its option groups.
void AddVariables(const CLI::App& owner, std::vector<Variable>& variables) {
  for (const CLI::Option* option : owner.get_options()) {
    const std::string name = VariableOf(owner, *option);
    if (name.empty()) continue;
    variables.push_back({name, kPrefix + AsVariable(option->get_lnames()[0])});
  }
  for (const CLI::App* group : OptionGroups(owner)) {
    AddVariables(*group, variables);
  }
}

// Appends the variables of a command and of all its subcommands.
void AddAllVariables(const CLI::App& command,
                     std::vector<Variable>& variables) {
  AddVariables(command, variables);
  for (const CLI::App* sub : Subcommands(command)) {
    AddAllVariables(*sub, variables);
  }
}

// The variable that `name` is probably a misspelling of; empty if there is
// none. Allows only one edit: with more, variables of other programs, which are
// not known here, would be taken for misspellings.
std::string MeantVariable(const std::string& name,
                          const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (variable.without_command == name) return variable.name;
  }
  const auto letters = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"_", ""}});
  };
  constexpr size_t kLeastLetters = 4;
  if (name.size() < sizeof(kPrefix) - 1 + kLeastLetters) return "";
  for (const Variable& variable : variables) {
    if (EditDistance(letters(name), letters(variable.name)) <= 1) {
      return variable.name;
    }
  }
  return "";
}

}  // namespace

std::string VariableOf(const CLI::App& owner, const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  if (names.empty() || !option.get_configurable()) return "";
  std::string path;
  const bool shared = owner.get_name().empty();
  for (const CLI::App* at = &owner; !shared && at->get_parent() != nullptr;
       at = at->get_parent()) {
    path = StrCat(at->get_name(), "_", path);
  }
  return kPrefix + AsVariable(path + names.front());
}

OptionSources::OptionSources(CLI::App& app, int argc, char** argv)
    : app_(app),
      given_(GivenOptions(argc, argv)),
      file_(std::make_shared<ConfigFile>(app)) {
  ReadVariables(app, given_);
  app.config_formatter(file_);
}

std::string OptionSources::NoteOf(const std::string& name) const {
  const CLI::Option* option = FindChosenOption(app_, name);
  if (option == nullptr || given_.contains(name)) return "";
  if (file_->filled().contains(option)) {
    return StrCat("--", name, " is from ",
                  app_.get_config_ptr()->as<std::string>());
  }
  const std::string variable =
      option == app_.get_config_ptr() ? kConfigVariable : option->get_envname();
  const char* value = variable.empty() ? nullptr : getenv(variable.c_str());
  if (value == nullptr || *value == '\0') return "";
  return StrCat(variable, "=", value, " in the environment");
}

std::string OptionSources::Notes(std::string_view text) const {
  constexpr std::string_view kNameCharacters =
      "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::vector<std::string> notes;
  for (size_t at = text.find("--"); at != text.npos; at = text.find("--", at)) {
    at += 2;
    const size_t end = text.find_first_not_of(kNameCharacters, at);
    std::string note = NoteOf(std::string(text.substr(at, end - at)));
    const bool noted =
        std::find(notes.begin(), notes.end(), note) != notes.end();
    if (!note.empty() && !noted) notes.push_back(std::move(note));
  }
  return notes.empty() ? "" : StrCat(" (", absl::StrJoin(notes, "; "), ")");
}

std::string OptionSources::SourceOf(const CLI::Option& option) const {
  if (file_->filled().contains(&option)) {
    return app_.get_config_ptr()->as<std::string>();
  }
  const std::vector<std::string>& names = option.get_lnames();
  const bool given = std::any_of(
      names.begin(), names.end(),
      [this](const std::string& name) { return given_.contains(name); });
  return given || option.get_envname().empty() ? "command line"
                                               : option.get_envname();
}

void OptionSources::DropMisspeltVariables() {
  std::vector<Variable> known, read;
  AddAllVariables(app_, known);
  AddVariables(app_, read);
  for (const CLI::App* command : ChosenCommands(app_)) {
    AddVariables(*command, read);
  }
  Names names = kOthers;
  names.insert(kConfigVariable);
  for (const Variable& variable : known) names.insert(variable.name);
  Names misspelt;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!name.starts_with(kPrefix) || names.contains(name)) continue;
    const std::string meant = MeantVariable(name, read);
    if (meant.empty()) continue;
    LogWarning(LogComponent::kCli,
               StrCat("a variable is not read\ndid you mean ", meant, "?"),
               {{"variable", name}});
    misspelt.insert(name);
  }
  for (const std::string& name : misspelt) unsetenv(name.c_str());
}

}  // namespace millrace
