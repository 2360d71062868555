// SPDX-License-Identifier: Apache-2.0
// Numbers and flags on the command line, beyond what CLI11 checks and says.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace millrace {

// Makes the options of `app` and of its subcommands that take numbers refuse
// what is not a number, a sign where there can be none and what exceeds 64
// bits (CLI11 takes -1 for 2^64 - 1), and its flags what is neither true nor
// false. Call it once, when all options are added; FinishOptions does.
void CheckValues(CLI::App& app);

// For CLI::Option::check: a whole number of at least `least`.
CLI::Validator AtLeast(int64_t least);

// For CLI::Option::check: a whole number in [least, most].
CLI::Validator WholeNumber(int64_t least, int64_t most);

// For CLI::Option::check: a number in [least, most]; `most` may be infinite.
CLI::Validator Number(double least, double most);

}  // namespace millrace
