// SPDX-License-Identifier: Apache-2.0
#include "common/cli/config_file.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

using Path = std::vector<std::string>;

const CLI::Option* FindOption(const CLI::App& command,
                              const std::string& name) {
  return command.get_option_no_throw("--" + name);
}

// Whether an option of this name means the same in all commands that have it:
// true for options of the program and of option groups.
bool IsShared(const CLI::App& command, const std::string& name) {
  for (const CLI::App* group : OptionGroups(command)) {
    if (FindOption(*group, name) != nullptr) return true;
  }
  return command.get_parent() == nullptr &&
         FindOption(command, name) != nullptr;
}

bool AnyShares(const CLI::App& command, const std::string& name) {
  const std::vector<const CLI::App*> subs = Subcommands(command);
  return IsShared(command, name) ||
         std::any_of(subs.begin(), subs.end(), [&name](const CLI::App* sub) {
           return AnyShares(*sub, name);
         });
}

// Appends the sections, such as "import.ogb", of the commands that have an
// option.
void AddSections(const CLI::App& command, const std::string& path,
                 const std::string& name, Path& sections) {
  for (const CLI::App* sub : Subcommands(command)) {
    const std::string section =
        path.empty() ? sub->get_name() : StrCat(path, ".", sub->get_name());
    if (FindOption(*sub, name) != nullptr) sections.push_back(section);
    AddSections(*sub, section, name, sections);
  }
}

void AddNames(const CLI::App& command, Path& names) {
  for (const CLI::Option* option : OptionsOf(command)) {
    const Path& own = option->get_lnames();
    names.insert(names.end(), own.begin(), own.end());
  }
  for (const CLI::App* sub : Subcommands(command)) AddNames(*sub, names);
}

[[noreturn]] void ThrowUnknown(const CLI::App& app, const std::string& name) {
  if (name.starts_with('-') ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") !=
          std::string::npos) {
    throw CLI::ConfigError(
        StrCat("--config: \"", name,
               "\" is not a line of the form `option = value`\nwrite e.g. "
               "batch-size = 64, and put options for one command below its "
               "name, e.g. [digest]; the file is neither YAML nor JSON"));
  }
  Path names;
  AddNames(app, names);
  throw CLI::ConfigError(
      StrCat("--config: there is no option --", name, DidYouMean(name, names)));
}

const CLI::App* FindCommand(const CLI::App& app, const Path& path) {
  const CLI::App* found = &app;
  for (const std::string& name : path) {
    const std::vector<const CLI::App*> subs = Subcommands(*found);
    const auto named = std::find_if(
        subs.begin(), subs.end(),
        [&name](const CLI::App* sub) { return sub->get_name() == name; });
    if (named == subs.end()) return nullptr;
    found = *named;
  }
  return found;
}

bool AnyIsGiven(const std::vector<const CLI::Option*>& options) {
  return std::any_of(
      options.begin(), options.end(),
      [](const CLI::Option* option) { return option->count() > 0; });
}

bool IsChosen(const CLI::App& app, const Path& path) {
  const std::vector<const CLI::App*> chosen = ChosenCommands(app);
  if (path.size() > chosen.size()) return false;
  for (size_t i = 0; i < path.size(); ++i) {
    if (chosen[i]->get_name() != path[i]) return false;
  }
  return true;
}

// `line` without its comment. CLI11 would not remove a comment after a
// section's name, and would remove what looks like one within quotes.
std::string WithoutComment(const std::string& line) {
  const size_t value =
      line.find_first_not_of(" \t", line.find('=') + 1);  // npos + 1: 0
  const bool quoted = line.find('=') != line.npos && value != line.npos &&
                      (line[value] == '"' || line[value] == '\'');
  const size_t end = quoted ? line.find(line[value], value + 1) : 0;
  return line.substr(0, line.find('#', end));
}

std::string WithoutComments(std::istream& input) {
  std::string text, line;
  while (std::getline(input, line)) text += WithoutComment(line) + "\n";
  return text;
}

// Merges items of the same option, because CLI11 uses only the first.
void Append(CLI::ConfigItem item, std::vector<CLI::ConfigItem>& items) {
  const auto same = std::find_if(
      items.begin(), items.end(), [&item](const CLI::ConfigItem& other) {
        return other.name == item.name && other.parents == item.parents;
      });
  if (same == items.end()) {
    items.push_back(std::move(item));
  } else {
    same->inputs.insert(same->inputs.end(), item.inputs.begin(),
                        item.inputs.end());
  }
}

}  // namespace

ConfigFile::ConfigFile(const CLI::App& app) : app_(app) {
  // Commas belong to the values, as in LIST and --fanouts.
  arrayDelimiter(';');
  comment('\0');  // comments are removed before CLI11 sees them
}

void ConfigFile::CheckShared(const CLI::ConfigItem& item) const {
  if (AnyShares(app_, item.name)) return;
  Path sections;
  AddSections(app_, "", item.name, sections);
  if (sections.empty()) ThrowUnknown(app_, item.name);
  throw CLI::ConfigError(
      StrCat("--config: --", item.name, " is for ",
             sections.size() == 1 ? "one command" : "certain commands",
             " only, but appears above all sections\nwrite it below [",
             absl::StrJoin(sections, "] or ["), "]"));
}

void ConfigFile::CheckSection(const CLI::ConfigItem& item) const {
  const CLI::App* command = FindCommand(app_, item.parents);
  if (command != nullptr && FindOption(*command, item.name) != nullptr) return;
  Path names;
  if (command != nullptr) AddNames(*command, names);
  throw CLI::ConfigError(StrCat(
      "--config: there is no option --", item.name, " in section [",
      absl::StrJoin(item.parents, "."), "]", DidYouMean(item.name, names)));
}

const CLI::App* ConfigFile::CommandOf(CLI::ConfigItem& item) const {
  if (!item.parents.empty()) {
    CheckSection(item);
    return IsChosen(app_, item.parents) ? FindCommand(app_, item.parents)
                                        : nullptr;
  }
  CheckShared(item);
  const std::vector<const CLI::App*> chosen = ChosenCommands(app_);
  for (size_t depth = chosen.size(); depth > 0; --depth) {
    if (!IsShared(*chosen[depth - 1], item.name)) continue;
    for (size_t i = 0; i < depth; ++i) {
      item.parents.push_back(chosen[i]->get_name());
    }
    return chosen[depth - 1];
  }
  return FindOption(app_, item.name) == nullptr ? nullptr : &app_;
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(
    std::istream& input) const {
  std::istringstream text(WithoutComments(input));
  const std::vector<CLI::ConfigItem> items = CLI::ConfigBase::from_config(text);
  filled_.clear();
  std::vector<CLI::ConfigItem> kept;
  // A command's own section takes precedence over shared keys.
  for (const bool in_section : {true, false}) {
    const std::set<const CLI::Option*> decided = filled_;
    for (CLI::ConfigItem item : items) {
      if (item.name == "++" || item.name == "--") continue;  // section marks
      if (item.parents.empty() == in_section) continue;
      const CLI::App* command = CommandOf(item);
      if (command == nullptr) continue;
      const CLI::Option* option = FindOption(*command, item.name);
      // The command line and the command's section take precedence.
      if (option->count() > 0 || AnyIsGiven(Rivals(*command, *option)) ||
          decided.contains(option)) {
        continue;
      }
      filled_.insert(option);
      Append(std::move(item), kept);
    }
  }
  return kept;
}

}  // namespace millrace
