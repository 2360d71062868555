// SPDX-License-Identifier: Apache-2.0
// The commands of a CLI::App and their options. An option group (CLI11's
// subcommand without a name) is not a command: its options are its command's.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace {

// The subcommands of `command`, in order of addition.
std::vector<CLI::App*> Subcommands(CLI::App& command);
std::vector<const CLI::App*> Subcommands(const CLI::App& command);

// The option groups of `command`, in order of addition.
std::vector<CLI::App*> OptionGroups(CLI::App& command);
std::vector<const CLI::App*> OptionGroups(const CLI::App& command);

// The options of `command`, those of its option groups last, including
// positionals and --help.
std::vector<CLI::Option*> OptionsOf(CLI::App& command);
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);

// The chosen subcommands, outermost first; empty if there are none.
std::vector<const CLI::App*> ChosenCommands(const CLI::App& app);

// The innermost command that was chosen; `app` itself when there is none.
const CLI::App& ChosenCommand(const CLI::App& app);

// The program and the chosen subcommands: "millrace import ogb".
std::string FullName(const CLI::App& app);

// The option of the chosen commands, innermost first, or of the program that
// has this long name (without dashes); null when there is none.
const CLI::Option* FindChosenOption(const CLI::App& app,
                                    const std::string& name);

// The options of which only one may have a value if `option` of `command` has
// one: those it excludes, and those of its option group (itself among them)
// where the group takes only one.
std::vector<const CLI::Option*> Rivals(const CLI::App& command,
                                       const CLI::Option& option);

}  // namespace millrace
