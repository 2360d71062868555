// SPDX-License-Identifier: Apache-2.0
// What a program that ends without success says, and its exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"
#include "common/cli/option_sources.h"

namespace millrace {

enum class ExitStatus : int {
  kDone = 0,
  kFailed = 1,
  kWrongUsage = 2,
  kInterrupted = 130,
};

// What is wrong with a command line that CLI11 refused, in our words; one '\n'
// may part it from what to do. `app` is the program.
std::string DescribeParseError(const CLI::App& app,
                               const CLI::ParseError& error);

// Both print one line of what and one of what to do to stderr, each after the
// name of the program; bytes that are no text (of damaged files, of odd paths)
// appear as \xNN. Wrong values that are not from the command line are told
// with where they are from.

// For what the body of a program returned (not OK).
ExitStatus ReportStatus(const CLI::App& app, const OptionSources& sources,
                        const absl::Status& status);

// For what CLI11 threw, other than for --help and --version.
ExitStatus ReportParseError(const CLI::App& app, const OptionSources& sources,
                            const CLI::ParseError& error);

}  // namespace millrace
