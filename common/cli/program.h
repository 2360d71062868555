// SPDX-License-Identifier: Apache-2.0
// What all programs share: --version, --config, --log-level, MILLRACE_*
// variables, exit statuses, logging.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"

namespace millrace {

// Adds --version, --config FILE and --log-level to `app`, finishes its help
// (help.h) and checks its numbers and flags (numbers.h). An option that takes
// one value may be repeated: the last one counts. Blanks around the items of an
// option with a delimiter are ignored. Call it once, when all options are
// added.
//
// An option is taken from the command line, else from the configuration file,
// else from the environment. Of options that exclude each other, the one on the
// command line wins.
//
// Options of `app` itself and of option groups (App::add_option_group) mean
// the same in all commands that have them. Any other option belongs to its
// command alone, even if others have one of the same name:
//   variable  MILLRACE_<OPTION>, and MILLRACE_<COMMAND>_<OPTION> (upper case,
//             '-' as '_'): MILLRACE_SERVERS is a LIST everywhere, and
//             MILLRACE_UP_SERVERS how many servers `up` starts.
//   file      keys above all sections, and keys in [command]. A section may
//             hold the former too, for its command.
// A variable whose name looks misspelt causes a warning. A key that no command
// has, or that is in the wrong section, is wrong usage.
//
// The file holds `option = value` lines as in TOML or INI, without the dashes;
// a list is one value (15,10,5 or [15, 10, 5]), a repeatable option is
// repeated.
// It must be a regular file.
void FinishOptions(CLI::App& app);

// Parses the command line, installs the interrupt handler, raises the limit of
// open files, sets up logging to stderr and runs `body`. Takes the
// preparse_callback of `app` and of every subcommand. Returns the exit status:
// 0 done (and --help, --version), 1 failed (stderr: one line of what, one of
// what to do), 2 wrong usage, 130 interrupted.
// INVALID_ARGUMENT and UNIMPLEMENTED from `body` are wrong usage where the
// message starts with the option, "--".
//
// A status message may hold one '\n': what went wrong before it, what to do
// after it. Without one the second line is a general hint for its code.
//
// Answers requests for completions (completion.h) itself, without `body`.
int RunProgram(CLI::App& app, int argc, char** argv,
               const std::function<absl::Status()>& body);

// Flushes stdout. RESOURCE_EXHAUSTED: this, or something that was printed
// before, could not be written. RunProgram calls it at the end. A body that
// goes on after printing its results calls it itself.
absl::Status FlushResults();

// "64M", "2.5G", "1048576": bytes with binary suffixes K, M, G, T (also KB,
// KiB, ...). For CLI::Option::transform.
CLI::Validator ByteSize();

}  // namespace millrace
