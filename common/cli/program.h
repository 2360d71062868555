// SPDX-License-Identifier: Apache-2.0
// What all programs share: --version, --config, --log-level, MILLRACE_*
// variables, exit statuses, logging.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"

namespace millrace {

// Adds --version, --config FILE and --log-level to `app`, and to every long
// option of it and of its subcommands the environment variable
// MILLRACE_<OPTION> (upper case, '-' as '_'). Shows the defaults of all options
// in --help. Call it once, when all options are added; it takes the
// preparse_callback of `app` and of every subcommand.
//
// An option is taken from the command line, else from the configuration file,
// else from the environment. Only the chosen subcommand reads the latter two,
// so a variable or a key that means something to another one does no harm. Of
// options that exclude each other the command line's wins.
//
// The file holds `option = value` lines as in TOML or INI, without the dashes;
// a list is one value (15,10,5 or [15,10,5]), a repeatable option is repeated.
// Keys before the first section are for every subcommand that has the option;
// [import.ogb] is for that one only. A key that no subcommand has is wrong
// usage.
void FinishOptions(CLI::App& app);

// Parses the command line, installs the interrupt handler, raises the limit of
// open files, sets up logging to stderr and runs `body`. Returns the exit
// status: 0 done (and --help, --version), 1 failed (stderr: one line of what,
// one of what to do), 2 wrong usage, 130 interrupted.
// INVALID_ARGUMENT and UNIMPLEMENTED from `body` are wrong usage where the
// message starts with the option, "--".
//
// A status message may hold one '\n': what went wrong before it, what to do
// after it. Without one the second line is a general hint for its code.
int RunProgram(CLI::App& app, int argc, char** argv,
               const std::function<absl::Status()>& body);

// "64M", "2.5G", "1048576": bytes with binary suffixes K, M, G, T (also KB,
// KiB, ...). For CLI::Option::transform.
CLI::Validator ByteSize();

}  // namespace millrace
