// SPDX-License-Identifier: Apache-2.0
// Manual pages, made from a program's options when it is installed: `PROGRAM
// __man` prints the program's own page, and `PROGRAM __man COMMAND` that of a
// command, which also describes the subcommands of that command.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace {

// Whether a program was started to print a manual page.
bool IsManPageRequest(int argc, char** argv);

// The page in man(7)'s macros. `words` are those after __man: a command, or
// none for the program. Empty if there is no such command. Must be called after
// FinishOptions() (program.h).
std::string ManPage(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace millrace
