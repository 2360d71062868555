// SPDX-License-Identifier: Apache-2.0
// millrace help: prints what COMMAND --help prints.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/help.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

// Throws CLI::ValidationError if there is no such command.
const CLI::App& FindCommand(const CLI::App& app,
                            const std::vector<std::string>& path) {
  const CLI::App* command = &app;
  for (const std::string& word : path) {
    std::vector<std::string> names;
    const CLI::App* found = nullptr;
    for (const CLI::App* sub : Subcommands(*command)) {
      names.push_back(sub->get_name());
      if (sub->get_name() == word) found = sub;
    }
    if (found == nullptr) {
      throw CLI::ValidationError(StrCat("there is no command ", word,
                                        DidYouMean(word, names),
                                        "\nsee `millrace --help`"));
    }
    command = found;
  }
  return *command;
}

}  // namespace

void AddHelpCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand("help", "print the help of a command");
  const auto path = std::make_shared<std::vector<std::string>>();
  command->add_option(
      "COMMAND", *path,
      "command, with its subcommand if it has any; without one, "
      "the commands are listed");
  command->footer("  millrace help import ogb");
  command->callback([path, &app, &body] {
    body = [&found = FindCommand(app, *path)] {
      std::cout << FormatHelp(found);
      return absl::OkStatus();
    };
  });
}

}  // namespace millrace
