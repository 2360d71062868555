// SPDX-License-Identifier: Apache-2.0
// Inputs that only Python's libraries write: NumPy's and PyTorch's files.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>

namespace millrace::testing {

// Runs `script` (a path below tests/) of this Python with arguments without
// quotes; whether it ended well. What it prints goes to the test's output.
inline bool RunPython(const std::string& python, const std::string& script,
                      std::initializer_list<std::string> arguments) {
  std::string command =
      "'" + python + "' '" MILLRACE_SOURCE_DIR "/tests/" + script + "'";
  for (const std::string& argument : arguments) {
    command += " '" + argument + "'";
  }
  return std::system(command.c_str()) == 0;
}

}  // namespace millrace::testing
