// SPDX-License-Identifier: Apache-2.0
#include "common/cli/help.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kDescriptionColumn = 28;

using Options = std::vector<const CLI::Option*>;

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

bool TakesValue(const CLI::Option& option) {
  return option.get_expected_max() > 0;
}

// "N", "FILE", "in|out". Prefers the description of a validator to the type.
std::string ValueText(const CLI::Option& option) {
  const std::vector<std::string> words = WordsOf(option);
  if (!words.empty()) return absl::StrJoin(words, "|");
  std::string text = option.get_type_name();
  for (const absl::string_view type : {"INT", "UINT", "FLOAT", "TEXT"}) {
    if (absl::StartsWith(text, StrCat(type, ":"))) {
      return text.substr(type.size() + 1);
    }
  }
  if (text == "INT" || text == "UINT") return "N";
  return text == "FLOAT" ? "NUMBER" : text;
}

std::string NamesText(const CLI::Option& option) {
  if (option.get_positional()) return option.get_name(/*positional=*/true);
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) {
    names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    names.push_back("--" + name);
  }
  if (!TakesValue(option)) return absl::StrJoin(names, ", ");
  const std::string value = ValueText(option);
  const bool repeatable =
      option.get_expected_max() >= CLI::detail::expected_max_vector_size &&
      !absl::EndsWith(value, "...");
  return StrCat(absl::StrJoin(names, ", "), " ", value,
                repeatable ? " ..." : "");
}

std::string JoinNames(const std::set<CLI::Option*>& options) {
  return absl::StrJoin(options, " or ",
                       [](std::string* out, const CLI::Option* option) {
                         *out += option->get_name();
                       });
}

std::string DescriptionText(const CLI::Option& option) {
  std::vector<std::string> remarks;
  if (option.get_required()) remarks.push_back("required");
  if (TakesValue(option) && !option.get_default_str().empty()) {
    remarks.push_back("default: " + option.get_default_str());
  }
  if (!option.get_needs().empty()) {
    remarks.push_back("with " + JoinNames(option.get_needs()));
  }
  if (!option.get_excludes().empty()) {
    remarks.push_back("not with " + JoinNames(option.get_excludes()));
  }
  return StrCat(
      option.get_description(),
      remarks.empty() ? "" : StrCat(" (", absl::StrJoin(remarks, "; "), ")"));
}

std::string Section(const std::string& title, const Options& options) {
  if (options.empty()) return "";
  std::string text = StrCat("\n", title, ":\n");
  for (const CLI::Option* option : options) {
    text += Entry(NamesText(*option), DescriptionText(*option));
  }
  return text;
}

// "Source", or "Source (one of these is required)".
std::string TitleOf(const CLI::App& group) {
  const bool one = group.get_require_option_max() == 1;
  if (!one) return group.get_group();
  return StrCat(group.get_group(), group.get_require_option_min() == 1
                                       ? " (one of these is required)"
                                       : " (at most one of these)");
}

// Option groups with the same title share a section.
std::string GroupSections(const CLI::App& command) {
  std::vector<std::pair<const CLI::App*, Options>> sections;
  for (const CLI::App* group : OptionGroups(command)) {
    const auto same = std::find_if(
        sections.begin(), sections.end(), [group](const auto& section) {
          return section.first->get_group() == group->get_group();
        });
    const Options options = group->get_options();
    if (same == sections.end()) {
      sections.emplace_back(group, options);
    } else {
      same->second.insert(same->second.end(), options.begin(), options.end());
    }
  }
  std::string text;
  for (const auto& [group, options] : sections) {
    text += Section(TitleOf(*group), options);
  }
  return text;
}

std::string Usage(const CLI::App& command, const std::string& name) {
  std::string usage = StrCat("Usage: ", name, " [OPTIONS]");
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_expected_max() > 1;
    const std::string text =
        option->get_name(/*positional=*/true) + (many ? "..." : "");
    usage += option->get_required() ? " " + text : " [" + text + "]";
  }
  if (!Subcommands(command).empty()) usage += " COMMAND";
  return usage + "\n";
}

std::string CommandList(const CLI::App& command) {
  std::string list;
  for (const CLI::App* sub : Subcommands(command)) {
    list += Entry(sub->get_name(), sub->get_description());
  }
  return list.empty() ? "" : "\nCommands:\n" + list;
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode) const override {
    Options positional, own, general;
    for (const CLI::Option* option : app->get_options()) {
      Options& kind = option->get_positional()                 ? positional
                      : option->get_group() == kGeneralOptions ? general
                                                               : own;
      kind.push_back(option);
    }
    std::string text =
        StrCat(Wrap(app->get_description(), 0, 0), "\n", Usage(*app, name),
               Section("Arguments", positional), Section("Options", own));
    text += GroupSections(*app);
    if (app->get_parent() == nullptr) text += Section("General", general);
    return StrCat(text, CommandList(*app), "\n", app->get_footer(), "\n");
  }
};

// Says how the options of a command can be given other than on the command
// line.
std::string OtherWays(const CLI::App& command, const std::string& prefix) {
  if (!Subcommands(command).empty()) {
    return "Options can also come from variables (MILLRACE_...) and from a "
           "file (--config FILE): the --help of each command says how.";
  }
  const std::string own = StrCat("MILLRACE_", prefix, "<OPTION>");
  const bool both = !prefix.empty() && !OptionGroups(command).empty();
  return StrCat(
      "Options can also come from variables, ", own,
      both ? " for those below \"Options\" and MILLRACE_<OPTION> for the rest"
           : "",
      both ? " (--tls-ca: MILLRACE_TLS_CA)" : "",
      ", and from a file (--config FILE); the command line wins.");
}

void FinishCommand(CLI::App& command, const std::string& prefix,
                   const std::shared_ptr<HelpFormatter>& formatter) {
  command.formatter(formatter);
  // CLI11 gives --help to groups, too.
  for (CLI::App* group : OptionGroups(command)) group->set_help_flag();
  command.get_help_ptr()->group(kGeneralOptions);
  command.get_help_ptr()->description("print this and exit");
  const std::string example = command.get_footer();
  command.footer(StrCat(
      example.empty() ? "" : StrCat("Example:\n", example, "\n\n"),
      Wrap(OtherWays(command, prefix), 0, 0),
      "\nExit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted."));
  for (CLI::App* sub : Subcommands(command)) {
    const std::string name = absl::AsciiStrToUpper(
        absl::StrReplaceAll(sub->get_name(), {{"-", "_"}}));
    FinishCommand(*sub, StrCat(prefix, name, "_"), formatter);
  }
}

}  // namespace

void FinishHelp(CLI::App& app) {
  FinishCommand(app, "", std::make_shared<HelpFormatter>());
}

std::string FormatHelp(const CLI::App& command) {
  std::string name = command.get_name();
  for (const CLI::App* at = command.get_parent(); at != nullptr;
       at = at->get_parent()) {
    name = StrCat(at->get_name(), " ", name);
  }
  return command.get_formatter()->make_help(&command, name,
                                            CLI::AppFormatMode::Normal);
}

}  // namespace millrace
