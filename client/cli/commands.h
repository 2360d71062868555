// SPDX-License-Identifier: Apache-2.0
// The subcommands of `millrace`, one file each (NAME_command.cc).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"

namespace millrace {

// The body of the chosen subcommand; set by the subcommand's callback.
using CommandBody = std::function<absl::Status()>;

// Each function adds its subcommand and options to `app`; if the user chooses
// that subcommand, parsing sets `body`. `app` and `body` must outlive parsing.
void AddImportCommand(CLI::App& app, CommandBody& body);
void AddSplitCommand(CLI::App& app, CommandBody& body);
void AddPartitionCommand(CLI::App& app, CommandBody& body);
void AddInspectCommand(CLI::App& app, CommandBody& body);
void AddVerifyCommand(CLI::App& app, CommandBody& body);
void AddSampleCommand(CLI::App& app, CommandBody& body);
void AddDigestCommand(CLI::App& app, CommandBody& body);
void AddPlanCommand(CLI::App& app, CommandBody& body);
void AddBenchCommand(CLI::App& app, CommandBody& body);
void AddLineageCommand(CLI::App& app, CommandBody& body);
void AddStatusCommand(CLI::App& app, CommandBody& body);
void AddUpCommand(CLI::App& app, CommandBody& body);
void AddCompletionCommand(CLI::App& app, CommandBody& body);
// Covers all commands of `app`, including those added later.
void AddHelpCommand(CLI::App& app, CommandBody& body);

}  // namespace millrace
