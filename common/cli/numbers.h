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

// For CLI::Option::check: a whole number of at least `min`.
CLI::Validator AtLeast(int64_t min);

// For CLI::Option::check: a whole number in [min, max].
CLI::Validator WholeNumber(int64_t min, int64_t max);

// For CLI::Option::check: a number in [min, max]; `max` may be infinite.
CLI::Validator Number(double min, double max);

}  // namespace millrace
