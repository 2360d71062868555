// SPDX-License-Identifier: Apache-2.0
#include "common/cli/command_tree.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

bool IsCommand(const CLI::App* app) { return !app->get_name().empty(); }
bool IsGroup(const CLI::App* app) { return app->get_name().empty(); }

// For const and mutable commands, like the members of CLI::App.
template <typename App, typename Option>
std::vector<Option*> AllOptions(App& command) {
  std::vector<Option*> options = command.get_options();
  for (App* group : OptionGroups(command)) {
    const std::vector<Option*> more = AllOptions<App, Option>(*group);
    options.insert(options.end(), more.begin(), more.end());
  }
  return options;
}

}  // namespace

std::vector<CLI::App*> Subcommands(CLI::App& command) {
  return command.get_subcommands([](CLI::App* app) { return IsCommand(app); });
}

std::vector<const CLI::App*> Subcommands(const CLI::App& command) {
  return command.get_subcommands(IsCommand);
}

std::vector<CLI::App*> OptionGroups(CLI::App& command) {
  return command.get_subcommands([](CLI::App* app) { return IsGroup(app); });
}

std::vector<const CLI::App*> OptionGroups(const CLI::App& command) {
  return command.get_subcommands(IsGroup);
}

std::vector<CLI::Option*> OptionsOf(CLI::App& command) {
  return AllOptions<CLI::App, CLI::Option>(command);
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  return AllOptions<const CLI::App, const CLI::Option>(command);
}

std::vector<const CLI::App*> ChosenCommands(const CLI::App& app) {
  std::vector<const CLI::App*> chosen;
  const CLI::App* at = &app;
  while (at != nullptr) {
    const CLI::App* next = nullptr;
    for (const CLI::App* sub : at->get_subcommands()) {
      if (IsCommand(sub)) next = sub;
    }
    if (next != nullptr) chosen.push_back(next);
    at = next;
  }
  return chosen;
}

const CLI::App& ChosenCommand(const CLI::App& app) {
  const std::vector<const CLI::App*> chosen = ChosenCommands(app);
  return chosen.empty() ? app : *chosen.back();
}

std::string PathOf(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr
             ? command.get_name()
             : absl::StrCat(PathOf(*parent), " ", command.get_name());
}

std::string FullName(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* command : ChosenCommands(app)) {
    absl::StrAppend(&name, " ", command->get_name());
  }
  return name;
}

const CLI::Option* FindChosenOption(const CLI::App& app,
                                    const std::string& name) {
  std::vector<const CLI::App*> commands = ChosenCommands(app);
  commands.insert(commands.begin(), &app);
  for (auto it = commands.rbegin(); it != commands.rend(); ++it) {
    const CLI::Option* option = (*it)->get_option_no_throw("--" + name);
    if (option != nullptr) return option;
  }
  return nullptr;
}

std::vector<const CLI::Option*> Rivals(const CLI::App& command,
                                       const CLI::Option& option) {
  std::vector<const CLI::Option*> rivals;
  for (const CLI::Option* other : option.get_excludes()) {
    rivals.push_back(other);
  }
  for (const CLI::App* group : OptionGroups(command)) {
    if (group->get_require_option_max() != 1) continue;
    const std::vector<const CLI::Option*> members = group->get_options();
    if (std::find(members.begin(), members.end(), &option) != members.end()) {
      rivals.insert(rivals.end(), members.begin(), members.end());
    }
  }
  return rivals;
}

}  // namespace millrace
