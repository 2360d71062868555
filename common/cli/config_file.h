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
// Throws CLI::ConfigError, as CLI11 requires, for a key that no command has, or
// that is in the wrong section. In its message, one '\n' separates what is
// wrong from what to do.
class ConfigFile : public CLI::ConfigBase {
 public:
  explicit ConfigFile(const CLI::App& app);

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // The options that got their values from the file read last.
  const std::set<const CLI::Option*>& filled() const { return filled_; }

 private:
  void CheckShared(const CLI::ConfigItem& item) const;
  void CheckSection(const CLI::ConfigItem& item) const;
  // The chosen command, or the program, whose option the key sets; null if the
  // option belongs to another command. Changes the key's section to that of the
  // command.
  const CLI::App* CommandOf(CLI::ConfigItem& item) const;

  const CLI::App& app_;
  mutable std::set<const CLI::Option*> filled_;  // from_config() is const
};

}  // namespace millrace
