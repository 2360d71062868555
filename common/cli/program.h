// SPDX-License-Identifier: Apache-2.0
// Start-up that all programs share: --version, --config, --print-config,
// --log-level, --log-format, MILLRACE_* variables, exit statuses, logging.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"
#include "common/base/log.h"

namespace millrace {

// Adds --version, --config FILE, --print-config, --log-level and --log-format
// to `app`, finishes its help (help.h) and checks its numbers and flags
// (numbers.h). If an option that takes one value is repeated, the last value
// counts. Blanks around the items of an option with a delimiter are ignored.
// Must be called once, after all options have been added.
//
// An option's value is taken from the command line, else from the configuration
// file, else from the environment. If options cannot be used together, the one
// on the command line wins.
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
// has, or that is in the wrong section, is reported as wrong usage.
//
// The file holds `option = value` lines as in TOML or INI, without the dashes;
// a list is one value (15,10,5 or [15, 10, 5]), a repeatable option is
// repeated.
// It must be a regular file.
void FinishOptions(CLI::App& app);

// Parses the command line, installs the interrupt handler, raises the limit on
// open files, sets up logging to stderr and runs `body`; events that name no
// component are about `component`. Replaces the
// preparse_callback of `app` and of every subcommand. Returns the exit status:
// 0 done (also after --help and --version), 1 failed (stderr gets one line that
// says what went wrong, and one that says what to do), 2 wrong usage, 130
// interrupted. Errors for which IsUsageError() (field_error.h) is true are
// wrong usage. With --print-config, prints the options (print_config.h) instead
// of running `body`. With --log-format json, an error is one event of the log
// with a field "advice".
//
// A status message may contain one '\n', which separates what went wrong from
// what to do. Without one, the second line is a general hint for the status
// code.
//
// Answers requests for completions (completion.h) and manual pages (man_page.h)
// without running `body`.
int RunProgram(CLI::App& app, int argc, char** argv,
               const std::function<absl::Status()>& body,
               LogComponent component = LogComponent::kCli);

// Flushes stdout. RESOURCE_EXHAUSTED: some output, now or earlier, could not be
// written. RunProgram() calls it at the end; a body that continues after
// printing its results should call it itself.
absl::Status FlushResults();

// "64M", "2.5G", "1048576": bytes with binary suffixes K, M, G, T (also KB,
// KiB, ...). For CLI::Option::transform.
CLI::Validator ByteSize();

}  // namespace millrace
