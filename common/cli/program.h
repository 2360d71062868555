// SPDX-License-Identifier: Apache-2.0
// What all programs share: --version, --config, MILLRACE_* variables, exit
// statuses, logging.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"

namespace millrace {

// Adds --version and --config FILE to `app`, and to every long option of it
// and of its subcommands the environment variable MILLRACE_<OPTION> (upper
// case, '-' as '_'). Call it when all options are added.
void FinishOptions(CLI::App& app);

// Parses the command line, installs the interrupt handler, sets up logging to
// stderr and runs `body`. Returns the exit status: 0 done (and --help,
// --version), 1 failed (stderr: one line of what, one of what to do), 2 wrong
// usage, 130 interrupted.
// INVALID_ARGUMENT from `body` whose message starts with "--" is wrong usage.
int RunProgram(CLI::App& app, int argc, char** argv,
               const std::function<absl::Status()>& body);

// "64M", "2.5G", "1048576": bytes with binary suffixes K, M, G, T.
// For CLI::Option::transform.
CLI::AsSizeValue ByteSize();

}  // namespace millrace
