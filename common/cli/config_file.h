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
// that is in the wrong section. One '\n' separates what is wrong from what to
// do.
class ConfigFile : public CLI::ConfigBase {
 public:
  explicit ConfigFile(const CLI::App& app);

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // The options that the last file read has values for.
  const std::set<const CLI::Option*>& filled() const { return filled_; }

 private:
  void CheckShared(const CLI::ConfigItem& item) const;
  void CheckSection(const CLI::ConfigItem& item) const;
  // The chosen command, or the program, whose option a key is for; null if it
  // is another command's. Makes the key's section that of the command.
  const CLI::App* CommandOf(CLI::ConfigItem& item) const;

  const CLI::App& app_;
  mutable std::set<const CLI::Option*> filled_;  // from_config() is const
};

}  // namespace millrace
