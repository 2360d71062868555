// SPDX-License-Identifier: Apache-2.0
// What a program that ends without success says, and its exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "absl/status/status.h"

namespace millrace {

enum class ExitStatus : int {
  kDone = 0,
  kFailed = 1,
  kWrongUsage = 2,
  kInterrupted = 130,
};

// The program and the chosen subcommands: "millrace import ogb".
std::string FullName(const CLI::App& app);

// Both print one line of what and one of what to do to stderr, each after the
// name of the program; bytes that are no text (of damaged files, of odd paths)
// appear as \xNN.

// For what the body of a program returned (not OK).
ExitStatus ReportStatus(const std::string& name, const absl::Status& status);

// For what CLI11 threw; --help and --version, which it throws too, are
// printed to stdout and done.
ExitStatus ReportParseError(const CLI::App& app, const CLI::ParseError& error);

}  // namespace millrace
