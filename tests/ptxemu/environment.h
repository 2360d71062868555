// SPDX-License-Identifier: Apache-2.0
// Environment variables that control the stand-ins.
#pragma once

#include <cstdint>
#include <string>

namespace millrace::ptxemu {

std::string TextVariable(const char* name, const char* fallback);
// Ends the process if the value is not a number.
uint64_t NumberVariable(const char* name, uint64_t fallback);

// Ends the process: the value of a variable is not understood.
[[noreturn]] void RefuseVariable(const char* name, const std::string& value);

}  // namespace millrace::ptxemu
