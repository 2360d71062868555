// SPDX-License-Identifier: Apache-2.0
// The instructions atom and red.
#pragma once

#include <cstdint>

#include "tests/ptxemu/instruction.h"

namespace millrace::ptxemu {

// Returns what an atomic instruction makes of the value `old`.
uint64_t UpdateAtomically(const Instruction& in, uint64_t old,
                          const Sources& sources, bool is_shared);

}  // namespace millrace::ptxemu
