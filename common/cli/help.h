// SPDX-License-Identifier: Apache-2.0
// What --help prints: usage, then the command's own options, then those of its
// option groups under the groups' titles, then commands and examples
// (CLI::App::footer). Lines have at most 80 columns unless a single word is
// longer.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace {

// Options of this CLI11 group (Option::group) come last, and only in the help
// of the program itself.
inline constexpr char kGeneralOptions[] = "General";

// Makes `app` and its subcommands print their help like this, and adds to their
// footers the other ways to give options, and the exit statuses. Must be called
// once, after all options have been added; FinishOptions() does so.
void FinishHelp(CLI::App& app);

// What `command --help` prints.
std::string FormatHelp(const CLI::App& command);

}  // namespace millrace
