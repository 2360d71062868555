// SPDX-License-Identifier: Apache-2.0
// What --help prints: usage, then the command's own options, then those of its
// option groups under the groups' titles, then commands, examples
// (CLI::App::footer), the other ways to give options, and the exit statuses.
// Lines have at most 80 columns unless a single word is longer.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace {

// Makes `app` and its subcommands print their help like this. Must be called
// once, after all options have been added; FinishOptions() does so.
void FinishHelp(CLI::App& app);

// What `command --help` prints.
std::string FormatHelp(const CLI::App& command);

}  // namespace millrace
