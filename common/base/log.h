// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace {

// One line of the program's log. For code that uses LibTorch: that brings a
// version of fmt which spdlog's headers do not compile with. Any thread.
void LogInfo(const std::string& line);
void LogWarning(const std::string& line);

}  // namespace millrace
