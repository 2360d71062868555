// SPDX-License-Identifier: Apache-2.0
// Inputs that only Python's libraries write: NumPy's and PyTorch's files.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>

namespace millrace::testing {

// Runs `script` (a path below tests/) with this Python and arguments without
// quotes; its exit status, -1 when it did not end by itself. What it prints
// goes to the test's output.
inline int RunPython(const std::string& python, const std::string& script,
                     std::initializer_list<std::string> arguments) {
  std::string command =
      "'" + python + "' '" MILLRACE_SOURCE_DIR "/tests/" + script + "'";
  for (const std::string& argument : arguments) {
    command += " '" + argument + "'";
  }
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace millrace::testing
