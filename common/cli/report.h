// SPDX-License-Identifier: Apache-2.0
// The message that a program prints when it fails, and its exit status.
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

// Says what is wrong with a command line that CLI11 refused, and, after an
// optional '\n', what to do. `app` is the program.
std::string DescribeParseError(const CLI::App& app,
                               const CLI::ParseError& error);

// The following two print to stderr one line that says what went wrong and one
// that says what to do, each after the name of the program; or, if the log is
// JSON, one event of the level "error". That a program was interrupted is one
// line, or an event of the level "info". Bytes that are not text, as in damaged
// files or strange paths, appear as \xNN. If a wrong value is not from the
// command line, they say where it comes from.

// For an error status returned by a program's body.
ExitStatus ReportStatus(const CLI::App& app, const OptionSources& sources,
                        const absl::Status& status);

// For an exception thrown by CLI11, except those for --help and --version.
ExitStatus ReportParseError(const CLI::App& app, const OptionSources& sources,
                            const CLI::ParseError& error);

}  // namespace millrace
