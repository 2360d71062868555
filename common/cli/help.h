// SPDX-License-Identifier: Apache-2.0
// What --help prints: usage, then the options of a command itself, then those
// of its option groups under the groups' titles, then commands and examples
// (CLI::App::footer), in at most 80 columns where words allow it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace millrace {

// Options with this CLI11 group (Option::group) stand last, in the help of the
// program alone.
inline constexpr char kGeneralOptions[] = "General";

// Lets `app` and its subcommands print their help so, and adds to their
// footers how else options can be given, and the exit statuses. Call it once,
// when all is added; FinishOptions does.
void FinishHelp(CLI::App& app);

// What `command --help` prints.
std::string HelpOf(const CLI::App& command);

}  // namespace millrace
