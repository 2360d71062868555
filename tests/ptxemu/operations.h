// SPDX-License-Identifier: Apache-2.0
// The instructions whose results depend only on their operands.
#pragma once

#include <cstdint>
#include <string_view>

#include "tests/ptxemu/instruction.h"

namespace millrace::ptxemu {

struct Operation {
  std::string_view name;  // the first part of the instruction's name
  int source_count;
  Compute compute;
};

// Null if there is no such operation.
const Operation* FindOperation(std::string_view name);

uint64_t Convert(const Instruction& in, const Sources& s);
uint64_t Set(const Instruction& in, const Sources& s);
uint64_t LookUpBits(const Instruction& in, const Sources& s);  // lop3

// Whether the first two sources compare as the instruction says.
bool Compare(const Instruction& in, const Sources& s);

}  // namespace millrace::ptxemu
