// SPDX-License-Identifier: Apache-2.0
// Runs Python, for inputs that only its libraries write: files of NumPy and
// PyTorch.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>

namespace millrace::testing {

// Runs `script` (a path below tests/) with the given Python; arguments must not
// contain quotes. Returns its exit status, or -1 if it was killed. Its output
// goes to the test's.
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
