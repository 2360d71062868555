// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <vector>

namespace millrace {

// The --config reader of program.h: hands each key to the subcommand that the
// user chose and ignores those of other subcommands.
// Lifetime: keeps a reference to `app`, which owns it.
// Throws CLI::ConfigError, as CLI11 asks, when no subcommand has a key.
class ConfigFile : public CLI::ConfigBase {
 public:
  explicit ConfigFile(const CLI::App& app);

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  const CLI::App& app_;
};

// The chosen subcommands, outermost first; empty when there is none.
std::vector<const CLI::App*> ChosenCommands(const CLI::App& app);

// The options of which only one may have a value if `option` of `app` has one:
// those it excludes, and those of its option group (itself among them) where
// the group takes only one.
std::vector<const CLI::Option*> Rivals(const CLI::App& app,
                                       const CLI::Option& option);

}  // namespace millrace
