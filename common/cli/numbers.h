// SPDX-License-Identifier: Apache-2.0
// Whole numbers on the command line, beyond what CLI11 checks.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace millrace {

// Makes the options of `app` and of its subcommands that take whole numbers
// refuse a sign where there can be none and what exceeds 64 bits; CLI11 takes
// -1 for 2^64 - 1. Options with another validator are left to it. Call it
// once, when all options are added; FinishOptions does.
void CheckWholeNumbers(CLI::App& app);

// For CLI::Option::check: a whole number of at least `least`.
CLI::Validator AtLeast(int64_t least);

}  // namespace millrace
