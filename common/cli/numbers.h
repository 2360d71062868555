// SPDX-License-Identifier: Apache-2.0
// Checks of numbers and flags that CLI11 itself does not make.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace millrace {

// Makes the options of `app` and of its subcommands that take numbers refuse
// values that are not numbers, negative values for unsigned numbers (CLI11
// takes -1 for 2^64 - 1) and values that exceed 64 bits, and makes flags refuse
// values other than true and false. Must be called once, after all options have
// been added; FinishOptions() does so.
void CheckValues(CLI::App& app);

// For CLI::Option::check: a whole number of at least `least`.
CLI::Validator AtLeast(int64_t least);

// For CLI::Option::check: a whole number in [least, most].
CLI::Validator WholeNumber(int64_t least, int64_t most);

// For CLI::Option::check: a number in [least, most]; `most` may be infinite.
CLI::Validator Number(double least, double most);

}  // namespace millrace
