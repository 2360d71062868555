// SPDX-License-Identifier: Apache-2.0
// millrace completion: prints a shell script that completes command lines.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/cli/commands.h"
#include "common/base/strings.h"
#include "common/cli/completion.h"
#include "common/cli/words.h"

namespace millrace {

void AddCompletionCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "completion",
      "print a script that lets a shell complete commands, options and values "
      "of all three programs");
  const auto shell = std::make_shared<std::string>();
  const std::vector<std::string> shells = CompletionShells();
  command
      ->add_option(
          "SHELL", *shell,
          StrCat("shell that reads the script: ", absl::StrJoin(shells, ", ")))
      ->required()
      ->check(OneOf(shells));
  command->footer("  source <(millrace completion bash)");
  command->callback([shell, &body] {
    body = [shell] {
      std::cout << CompletionScript(*shell);
      return absl::OkStatus();
    };
  });
}

}  // namespace millrace
