// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/config_file.h"

namespace millrace {

// The environment variable that an option reads; `owner` is the command or the
// option group that it was added to. program.h has the rule.
std::string VariableOf(const CLI::App& owner, const CLI::Option& option);

// Where the options of one run of a program take their values from: the command
// line, else the file of --config, else the environment.
// Threads: one. Lifetime: `app` must outlive it.
class OptionSources {
 public:
  // Makes the next parse of `app` read all of them.
  OptionSources(CLI::App& app, int argc, char** argv);

  // " (NAME=VALUE in the environment)", " (--option is from FILE)" for the
  // options named in `text` whose values are not from the command line; empty
  // when there are none.
  std::string Notes(std::string_view text) const;

  // Logs a warning for each MILLRACE_ variable that looks like a misspelling
  // of one that the chosen command reads, and removes it from the environment,
  // so that the processes that this one starts do not warn again.
  void DropMisspeltVariables();

 private:
  std::string NoteOf(const std::string& name) const;

  CLI::App& app_;
  const std::set<std::string> given_;  // long options on the command line
  const std::shared_ptr<ConfigFile> file_;
};

}  // namespace millrace
