// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "common/cli/option_sources.h"

namespace millrace {

inline constexpr char kPrintConfigOption[] = "--print-config";

// Prints to stdout the options of the program and of the chosen commands as a
// file that --config reads back: "option = value" for options that have been
// given, with a comment that says where, and comments with the defaults of the
// others. Arguments without a name, which a file cannot set, are comments.
// INVALID_ARGUMENT: a value that no line of such a file can hold.
absl::Status PrintConfig(const CLI::App& app, const OptionSources& sources);

}  // namespace millrace
