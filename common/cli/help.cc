// SPDX-License-Identifier: Apache-2.0
#include "common/cli/help.h"

#include <memory>

#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/option_texts.h"

namespace millrace {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kDescriptionColumn = 28;

// Breaks `text` into lines of at most kColumns columns. The first line begins
// at column `at`, the others at `indent`.
std::string Wrap(absl::string_view text, size_t at, size_t indent) {
  std::string lines;
  bool first = true;
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!first && at + 1 + word.size() > kColumns) {
      lines += StrCat("\n", std::string(indent, ' '));
      at = indent;
      first = true;
    }
    if (!first) ++at;
    lines += StrCat(first ? "" : " ", word);
    at += word.size();
    first = false;
  }
  return lines;
}

// "  left        right", with `right` on a line of its own if `left` is long.
std::string Entry(const std::string& left, const std::string& right) {
  const size_t taken = 2 + left.size();
  const bool fits = taken + 2 <= kDescriptionColumn;
  const std::string gap = fits ? std::string(kDescriptionColumn - taken, ' ')
                               : "\n" + std::string(kDescriptionColumn, ' ');
  return StrCat("  ", left, gap,
                Wrap(right, kDescriptionColumn, kDescriptionColumn), "\n");
}

std::string Section(const OptionSection& section) {
  std::string text = StrCat("\n", section.title, ":\n");
  for (const CLI::Option* option : section.options) {
    text += Entry(NamesText(*option), DescriptionText(*option));
  }
  return text;
}

std::string CommandList(const CLI::App& command) {
  std::string list;
  for (const CLI::App* sub : Subcommands(command)) {
    list += Entry(sub->get_name(), sub->get_description());
  }
  return list.empty() ? "" : "\nCommands:\n" + list;
}

// The example, the other ways to give options, and the exit statuses.
std::string Footer(const CLI::App& command) {
  const std::string example = command.get_footer();
  return StrCat(
      example.empty() ? "" : StrCat("Example:\n", example, "\n\n"),
      Wrap(OtherWaysText(command), 0, 0),
      "\nExit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n");
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode) const override {
    std::string text =
        StrCat(Wrap(app->get_description(), 0, 0), "\nUsage: ", name, " ",
               ArgumentsText(*app), "\n");
    for (const OptionSection& section : OptionSections(*app)) {
      text += Section(section);
    }
    return StrCat(text, CommandList(*app), "\n", Footer(*app));
  }
};

void FinishCommand(CLI::App& command,
                   const std::shared_ptr<HelpFormatter>& formatter) {
  command.formatter(formatter);
  // CLI11 gives --help to groups, too.
  for (CLI::App* group : OptionGroups(command)) group->set_help_flag();
  command.get_help_ptr()->group(kGeneralOptions);
  command.get_help_ptr()->description("print this and exit");
  for (CLI::App* sub : Subcommands(command)) FinishCommand(*sub, formatter);
}

}  // namespace

void FinishHelp(CLI::App& app) {
  FinishCommand(app, std::make_shared<HelpFormatter>());
}

std::string FormatHelp(const CLI::App& command) {
  return command.get_formatter()->make_help(&command, PathOf(command),
                                            CLI::AppFormatMode::Normal);
}

}  // namespace millrace
