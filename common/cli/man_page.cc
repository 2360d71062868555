// SPDX-License-Identifier: Apache-2.0
#include "common/cli/man_page.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/option_texts.h"

namespace millrace {
namespace {

// `text` as it appears in print: man(7) takes some characters for typographic
// ones, and lines that begin with a dot or a quote for requests.
std::string Escape(absl::string_view text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"},
                                                         {"-", "\\-"},
                                                         {"'", "\\(aq"},
                                                         {"`", "\\(ga"},
                                                         {"^", "\\(ha"},
                                                         {"~", "\\(ti"}});
  return absl::StartsWith(escaped, ".") ? "\\&" + escaped : escaped;
}

// An argument of a macro.
std::string Quoted(absl::string_view text) {
  return StrCat("\"", absl::StrReplaceAll(Escape(text), {{"\"", "\\(dq"}}),
                "\"");
}

// Lines that are shown as they are.
std::string Verbatim(const std::string& text) {
  std::string lines = ".nf\n";
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines += Escape(line) + "\n";
  }
  return lines + ".fi\n";
}

std::string Item(const std::string& heading, const std::string& text) {
  return StrCat(".TP\n.B ", Quoted(heading), "\n", Escape(text), "\n");
}

std::string OptionItems(const CLI::App& command) {
  std::string items;
  for (const OptionSection& section : OptionSections(command)) {
    items += StrCat(".SS ", Quoted(section.title), "\n");
    for (const CLI::Option* option : section.options) {
      items += Item(NamesText(*option), DescriptionText(*option));
    }
  }
  return items;
}

// The name of the page of a command of the program, "millrace-import", or of
// the program.
std::string PageName(const CLI::App& command) {
  return absl::StrReplaceAll(PathOf(command), {{" ", "-"}});
}

std::string Synopsis(const CLI::App& command) {
  return StrCat(".B ", Quoted(PathOf(command)), "\n",
                Escape(ArgumentsText(command)), "\n");
}

// The commands of a program, which have pages of their own.
std::string CommandItems(const CLI::App& app) {
  std::string items;
  for (const CLI::App* sub : Subcommands(app)) {
    items += StrCat(".TP\n.BR ", Escape(PageName(*sub)), " (1)\n",
                    Escape(sub->get_description()), "\n");
  }
  return items.empty() ? "" : ".SH COMMANDS\n" + items;
}

std::string Example(const CLI::App& command) {
  const std::string example = command.get_footer();
  return example.empty() ? "" : ".SH EXAMPLE\n" + Verbatim(example);
}

// A subcommand of a command is a section of the command's page.
std::string SubcommandSections(const CLI::App& command) {
  std::string sections;
  for (const CLI::App* sub : Subcommands(command)) {
    const std::string example = sub->get_footer();
    sections += StrCat(".SH ", Quoted(absl::AsciiStrToUpper(PathOf(*sub))),
                       "\n", Escape(sub->get_description()), "\n.PP\n",
                       Synopsis(*sub), OptionItems(*sub),
                       example.empty() ? "" : ".PP\n" + Verbatim(example),
                       SubcommandSections(*sub));
  }
  return sections;
}

constexpr char kExitStatus[] =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nDone.\n"
    ".TP\n.B 1\nFailed; standard error says why, and what to do.\n"
    ".TP\n.B 2\nWrong usage.\n"
    ".TP\n.B 130\nInterrupted.\n";

std::string Page(const CLI::App& command) {
  const bool is_program = command.get_parent() == nullptr;
  const std::string name = PageName(command);
  std::string page = StrCat(
      ".TH ", Quoted(absl::AsciiStrToUpper(name)), " 1 \"\" ",
      Quoted(StrCat("millrace ", MILLRACE_VERSION)), " ",
      Quoted("User Commands"), "\n.SH NAME\n", Escape(name), " \\- ",
      Escape(command.get_description()), "\n.SH SYNOPSIS\n", Synopsis(command));
  const std::string options = OptionItems(command);
  if (!options.empty()) page += ".SH OPTIONS\n" + options;
  page += is_program ? CommandItems(command) : SubcommandSections(command);
  page += StrCat(".SH ENVIRONMENT AND FILES\n", Escape(OtherWaysText(command)),
                 "\n", kExitStatus, Example(command));
  if (is_program) return page;
  return StrCat(page, ".SH SEE ALSO\n.BR ",
                Escape(PageName(*command.get_parent())),
                " (1), for the options that all commands have\n");
}

}  // namespace

bool IsManPageRequest(int argc, char** argv) {
  return argc > 1 && argv[1] == std::string_view("__man");
}

std::string ManPage(const CLI::App& app,
                    const std::vector<std::string>& words) {
  if (words.empty()) return Page(app);
  for (const CLI::App* sub : Subcommands(app)) {
    if (words.size() == 1 && sub->get_name() == words[0]) return Page(*sub);
  }
  return "";
}

}  // namespace millrace
