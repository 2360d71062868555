// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <set>
#include <vector>

namespace millrace {

// The --config reader of program.h: hands each key to the command that the user
// chose and ignores those of other commands.
// Lifetime: keeps a reference to `app`, which owns it.
// Throws CLI::ConfigError, as CLI11 asks, for a key that no command has, or has
// where it stands; one '\n' parts what is wrong from what to do.
class ConfigFile : public CLI::ConfigBase {
 public:
  explicit ConfigFile(const CLI::App& app);

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // The options that the file that was read last has a value for.
  const std::set<const CLI::Option*>& filled() const { return filled_; }

 private:
  void CheckShared(const CLI::ConfigItem& item) const;
  void CheckSection(const CLI::ConfigItem& item) const;
  // The chosen command, or the program, whose option a key is for, which then
  // stands in the key's section; null where it is another command's.
  const CLI::App* CommandOf(CLI::ConfigItem& item) const;

  const CLI::App& app_;
  mutable std::set<const CLI::Option*> filled_;  // from_config() is const
};

}  // namespace millrace
