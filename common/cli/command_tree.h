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

// The options of `command`, including positionals and --help; those of its
// option groups come last.
std::vector<CLI::Option*> OptionsOf(CLI::App& command);
std::vector<const CLI::Option*> OptionsOf(const CLI::App& command);

// The chosen subcommands, outermost first; empty if there are none.
std::vector<const CLI::App*> ChosenCommands(const CLI::App& app);

// The innermost command that was chosen; `app` itself if there is none.
const CLI::App& ChosenCommand(const CLI::App& app);

// The program and the commands down to `command`: "millrace import ogb".
std::string PathOf(const CLI::App& command);

// The program and the chosen subcommands: "millrace import ogb".
std::string FullName(const CLI::App& app);

// Finds an option by its long name (without dashes) among those of the chosen
// commands, innermost first, and then of the program. Null if there is none.
const CLI::Option* FindChosenOption(const CLI::App& app,
                                    const std::string& name);

// The options that compete with `option` of `command` for a value: those it
// excludes and, if its option group allows only one option, all options of the
// group, including `option`.
std::vector<const CLI::Option*> Rivals(const CLI::App& command,
                                       const CLI::Option& option);

}  // namespace millrace
