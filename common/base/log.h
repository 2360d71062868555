// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace {

// Write one line to the program's log. They are for code that uses LibTorch,
// whose version of fmt spdlog's headers do not compile with. Any thread may
// call them.
void LogInfo(const std::string& line);
void LogWarning(const std::string& line);

}  // namespace millrace
