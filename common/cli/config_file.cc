// SPDX-License-Identifier: Apache-2.0
#include "common/cli/config_file.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace millrace {
namespace {

using Path = std::vector<std::string>;

bool HasOption(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw("--" + name) != nullptr;
}

bool AnyHasOption(const CLI::App& app, const std::string& name) {
  if (HasOption(app, name)) return true;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (AnyHasOption(*sub, name)) return true;
  }
  return false;
}

const CLI::App* FindCommand(const CLI::App& app, const Path& path) {
  const CLI::App* found = &app;
  for (const std::string& name : path) {
    const std::vector<const CLI::App*> named = found->get_subcommands(
        [&name](const CLI::App* sub) { return sub->get_name() == name; });
    if (named.empty()) return nullptr;
    found = named.front();
  }
  return found;
}

// Where a key without a section goes: the innermost chosen command that has
// the option. Returns false when only other commands have it.
bool Place(const CLI::App& app, CLI::ConfigItem& item) {
  const std::vector<const CLI::App*> chosen = ChosenCommands(app);
  for (size_t depth = chosen.size(); depth > 0; --depth) {
    const CLI::App& command = *chosen[depth - 1];
    if (!HasOption(command, item.name)) continue;
    const CLI::Option& option = *command.get_option("--" + item.name);
    for (const CLI::Option* rival : Rivals(command, option)) {
      if (rival->count() > 0) return false;  // the command line decided
    }
    for (size_t i = 0; i < depth; ++i) {
      item.parents.push_back(chosen[i]->get_name());
    }
    return true;
  }
  return HasOption(app, item.name);
}

bool IsChosen(const CLI::App& app, const Path& path) {
  const std::vector<const CLI::App*> chosen = ChosenCommands(app);
  if (path.size() > chosen.size()) return false;
  for (size_t i = 0; i < path.size(); ++i) {
    if (chosen[i]->get_name() != path[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<const CLI::App*> ChosenCommands(const CLI::App& app) {
  std::vector<const CLI::App*> chosen;
  const CLI::App* at = &app;
  while (at != nullptr) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : at->get_subcommands()) {
      if (!sub->get_name().empty()) next = sub;  // no option group
    }
    if (next != nullptr) chosen.push_back(next);
    at = next;
  }
  return chosen;
}

std::vector<const CLI::Option*> Rivals(const CLI::App& app,
                                       const CLI::Option& option) {
  std::vector<const CLI::Option*> rivals;
  for (const CLI::Option* other : option.get_excludes()) {
    rivals.push_back(other);
  }
  for (const CLI::App* group : app.get_subcommands(nullptr)) {
    if (!group->get_name().empty() || group->get_require_option_max() != 1) {
      continue;
    }
    const std::vector<const CLI::Option*> members = group->get_options();
    if (std::find(members.begin(), members.end(), &option) != members.end()) {
      rivals.insert(rivals.end(), members.begin(), members.end());
    }
  }
  return rivals;
}

ConfigFile::ConfigFile(const CLI::App& app) : app_(app) {
  // Commas belong to the values: LIST and --fanouts.
  arrayDelimiter(';');
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(
    std::istream& input) const {
  std::vector<CLI::ConfigItem> kept;
  for (CLI::ConfigItem& item : CLI::ConfigBase::from_config(input)) {
    if (item.name == "++" || item.name == "--") continue;  // section marks
    if (item.parents.empty()) {
      if (!AnyHasOption(app_, item.name)) {
        throw CLI::ConfigError(
            absl::StrCat("--config: there is no option --", item.name));
      }
      if (Place(app_, item)) kept.push_back(std::move(item));
      continue;
    }
    const CLI::App* command = FindCommand(app_, item.parents);
    if (command == nullptr || !HasOption(*command, item.name)) {
      throw CLI::ConfigError(
          absl::StrCat("--config: there is no option --", item.name,
                       " in section [", absl::StrJoin(item.parents, "."), "]"));
    }
    if (IsChosen(app_, item.parents)) kept.push_back(std::move(item));
  }
  return kept;
}

}  // namespace millrace
