// SPDX-License-Identifier: Apache-2.0
#include "common/cli/print_config.h"

#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "common/base/field_error.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"

namespace millrace {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,:/@+*-_=";

// `value` as a file holds it. CLI11 removes a pair of quotes and knows no
// escapes.
absl::StatusOr<std::string> FileValue(const std::string& name,
                                      const std::string& value) {
  if (!value.empty() && value.find_first_not_of(kPlain) == value.npos) {
    return value;
  }
  const char quote = value.find('"') == value.npos ? '"' : '\'';
  if (value.find(quote) != value.npos ||
      value.find_first_of("\n\r") != value.npos) {
    return UsageError(StrCat("--", name, " ", Printable(value),
                             ": a file for --config cannot hold a value with "
                             "line feeds, or with both kinds of quotes"));
  }
  return StrCat(std::string(1, quote), value, std::string(1, quote));
}

// The values that count: the last one, unless the option collects them.
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  std::vector<std::string> values = option.results();
  if (option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast &&
      values.size() > 1) {
    values.erase(values.begin(), values.end() - 1);
  }
  if (option.get_delimiter() != '\0') {
    return {absl::StrJoin(values, std::string(1, option.get_delimiter()))};
  }
  return values;
}

// "# threads = 0", "# peers =" for an option that has not been given.
std::string DefaultLine(const CLI::Option& option, const std::string& name) {
  const bool flag = option.get_expected_max() == 0;
  const std::string shown =
      flag ? "false" : Printable(option.get_default_str());
  return StrCat("# ", name, " =", shown.empty() ? "" : StrCat(" ", shown),
                "\n");
}

absl::StatusOr<std::string> LinesOf(const CLI::Option& option,
                                    const OptionSources& sources) {
  if (option.get_positional()) {
    return option.count() == 0
               ? ""
               : StrCat("# ", option.get_name(/*positional=*/true), " ",
                        Printable(absl::StrJoin(option.results(), " ")),
                        " (give it on the command line)\n");
  }
  if (!option.get_configurable() || option.get_lnames().empty()) return "";
  const std::string& name = option.get_lnames().front();
  if (option.count() == 0) return DefaultLine(option, name);
  std::string lines;
  for (const std::string& value : ValuesOf(option)) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string text, FileValue(name, value));
    lines += StrCat(name, " = ", text, "  # ",
                    Printable(sources.SourceOf(option)), "\n");
  }
  return lines;
}

absl::Status PrintOptions(const CLI::App& command,
                          const OptionSources& sources) {
  for (const CLI::Option* option : OptionsOf(command)) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string lines,
                              LinesOf(*option, sources));
    std::cout << lines;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrintConfig(const CLI::App& app, const OptionSources& sources) {
  std::cout << "# " << FullName(app) << " " << MILLRACE_VERSION << "\n";
  MILLRACE_RETURN_IF_ERROR(PrintOptions(app, sources));
  std::string section;
  for (const CLI::App* command : ChosenCommands(app)) {
    section += StrCat(section.empty() ? "" : ".", command->get_name());
    std::cout << "\n[" << section << "]\n";
    MILLRACE_RETURN_IF_ERROR(PrintOptions(*command, sources));
  }
  return absl::OkStatus();
}

}  // namespace millrace
