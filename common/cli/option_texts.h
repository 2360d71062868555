// SPDX-License-Identifier: Apache-2.0
// What help and manual pages say about a command and its options, apart from
// how it is laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace {

// Options of this CLI11 group (Option::group) come last, and only in the help
// of the program itself.
inline constexpr char kGeneralOptions[] = "General";

struct OptionSection {
  std::string title;
  std::vector<const CLI::Option*> options;  // at least one
};

// The options of `command` in the order in which they are shown.
std::vector<OptionSection> OptionSections(const CLI::App& command);

// "-r, --real NUMBER"; a positional's name.
std::string NamesText(const CLI::Option& option);

// What the option does, and "(default: 3; not with --flag)".
std::string DescriptionText(const CLI::Option& option);

// What follows the name of a command in its usage: "[OPTIONS] STORE COMMAND".
std::string ArgumentsText(const CLI::App& command);

// Says how the options of a command can be given other than on the command
// line.
std::string OtherWaysText(const CLI::App& command);

}  // namespace millrace
