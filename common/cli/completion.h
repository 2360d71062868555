// SPDX-License-Identifier: Apache-2.0
// Completion of command lines in shells. A shell asks the program itself, with
// each press of the key: `PROGRAM __complete WORD... CURRENT`. So one short
// script serves all programs, and what it offers is what the program takes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace millrace {

// Whether a program was started to complete a command line.
bool IsCompletionRequest(int argc, char** argv);

// The answer to a request, a candidate a line, some followed by a tab and a
// description; the line ":files" asks for names of files instead. `words` are
// what stands behind __complete, the last of them the one to be
// completed, possibly empty. A shell may have made three words of
// --option=value.
// What takes a file or a folder is known by the name of its type
// (CLI::Option::type_name), or of the positional: FILE, DIR, STORE, DATASET.
std::string Completions(const CLI::App& app,
                        const std::vector<std::string>& words);

// The shells that CompletionScript knows.
std::vector<std::string> CompletionShells();

// A script for a shell to read, which completes the command lines of millrace,
// millrace-server and millrace-train. `shell` is one of CompletionShells().
std::string CompletionScript(const std::string& shell);

}  // namespace millrace
