// SPDX-License-Identifier: Apache-2.0
// The message that a failing program prints, and its exit status.
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

// What is wrong with a command line that CLI11 refused. One '\n' may separate
// it from what to do. `app` is the program.
std::string DescribeParseError(const CLI::App& app,
                               const CLI::ParseError& error);

// Both print one line of what and one of what to do to stderr, each after the
// name of the program. Bytes that are not text, as in damaged files or strange
// paths, appear as \xNN. Where a wrong value is not from the command line, they
// say where it is from.

// For what the body of a program returned (not OK).
ExitStatus ReportStatus(const CLI::App& app, const OptionSources& sources,
                        const absl::Status& status);

// For what CLI11 threw, other than for --help and --version.
ExitStatus ReportParseError(const CLI::App& app, const OptionSources& sources,
                            const CLI::ParseError& error);

}  // namespace millrace
