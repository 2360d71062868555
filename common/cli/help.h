// SPDX-License-Identifier: Apache-2.0
// What --help prints: usage, then the options of a command itself, then those
// of its option groups under the groups' titles, then commands and examples
// (CLI::App::footer), in at most 80 columns where words allow it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace {

// Options of this CLI11 group (Option::group) come last, and only in the help
// of the program itself.
inline constexpr char kGeneralOptions[] = "General";

// Makes `app` and its subcommands print their help like this, and adds to their
// footers how else options can be given, and the exit statuses. Call it once,
// when all options are added; FinishOptions does.
void FinishHelp(CLI::App& app);

// What `command --help` prints.
std::string HelpOf(const CLI::App& command);

}  // namespace millrace
