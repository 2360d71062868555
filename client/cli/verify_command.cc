// SPDX-License-Identifier: Apache-2.0
// millrace verify PATH
#include <iostream>
#include <memory>
#include <string>

#include "client/cli/commands.h"
#include "common/base/status_macros.h"
#include "common/graph/verify.h"

namespace millrace {
namespace {

absl::Status Verify(const std::string& path) {
  MILLRACE_RETURN_IF_ERROR(VerifyStore(path));
  std::cout << path << " is intact\n";
  return absl::OkStatus();
}

}  // namespace

void AddVerifyCommand(CLI::App& app, CommandBody& body) {
  CLI::App* command = app.add_subcommand(
      "verify",
      "check every checksum and every invariant of a dataset or "
      "store");
  auto path = std::make_shared<std::string>();  // lives as long as the option
  command->add_option("STORE", *path, "dataset or store")->required();
  command->footer("  millrace verify cora-2");
  command->callback([path, &body] { body = [path] { return Verify(*path); }; });
}

}  // namespace millrace
