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

// The environment variable that sets an option (see program.h for the rule).
// `owner` is the command or option group that the option was added to.
std::string VariableOf(const CLI::App& owner, const CLI::Option& option);

// The sources of option values in one run of a program: the command line, then
// the --config file, then the environment. The first that has a value wins.
// Not thread-safe. Lifetime: `app` must outlive it.
class OptionSources {
 public:
  // Makes the next parse of `app` read all of these sources.
  OptionSources(CLI::App& app, int argc, char** argv);

  // " (NAME=VALUE in the environment)", " (--option is from FILE)" for the
  // options named in `text` whose values do not come from the command line;
  // empty if there are none.
  std::string Notes(std::string_view text) const;

  // "command line", "FILE" or "MILLRACE_NAME": where the value of an option
  // that has one comes from.
  std::string SourceOf(const CLI::Option& option) const;

  // Logs a warning for each MILLRACE_ variable that looks like a misspelling of
  // one that the chosen command reads. Removes it from the environment, so that
  // child processes do not warn again.
  void DropMisspeltVariables();

 private:
  std::string NoteOf(const std::string& name) const;

  CLI::App& app_;
  // long options on the command line, without dashes
  const std::set<std::string> given_;
  const std::shared_ptr<ConfigFile> file_;  // shared with CLI11
};

}  // namespace millrace
