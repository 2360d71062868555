// SPDX-License-Identifier: Apache-2.0
// Shell completion of command lines. Each time the Tab key is pressed, the
// shell asks the program itself: `PROGRAM __complete WORD... CURRENT`. That
// way, one short script serves all programs and is never out of date.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace {

// Whether a program was started to complete a command line.
bool IsCompletionRequest(int argc, char** argv);

// The answer to a request: one candidate per line, some followed by a tab and a
// description, or the line ":files" to complete file names. `words` are those
// after __complete; the last one, which may be empty, is to be completed. A
// shell may have split --option=value into three words.
// An option takes a path if its type name (CLI::Option::type_name) is FILE,
// DIR, STORE or DATASET; for a positional, its own name decides.
std::string Completions(const CLI::App& app,
                        const std::vector<std::string>& words);

// The shells that CompletionScript supports.
std::vector<std::string> CompletionShells();

// A script for a shell to read, which completes the command lines of millrace,
// millrace-server and millrace-train. `shell` is one of CompletionShells().
std::string CompletionScript(const std::string& shell);

}  // namespace millrace
