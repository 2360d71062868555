// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace {

// Write one line to the program's log. For code that uses LibTorch: spdlog's
// headers do not compile with LibTorch's version of fmt. Any thread may call
// them.
void LogInfo(const std::string& line);
void LogWarning(const std::string& line);

}  // namespace millrace
