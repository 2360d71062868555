// SPDX-License-Identifier: Apache-2.0
#include "common/cli/report.h"

#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/base/log_line.h"
#include "common/base/printable.h"
#include "common/base/strings.h"
#include "common/cli/command_tree.h"
#include "common/cli/words.h"

namespace millrace {
namespace {

// An event that no --log-level leaves out.
void PrintLastEvent(const std::string& message) {
  std::cerr << LogLine({.time = absl::Now(),
                        .level = LogLevel::kError,
                        .component = OwnComponent(),
                        .message = message,
                        .fields = {}},
                       LogFormat::kJson)
            << std::endl;
}

std::string GeneralHint(const absl::Status& status, const std::string& name) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      if (IsUsageError(status)) break;
      return "correct what is named above and run the command again";
    case absl::StatusCode::kNotFound:
      return "check that the path or name exists and is spelt right";
    case absl::StatusCode::kAlreadyExists:
      return "choose another output path, or remove the existing one";
    case absl::StatusCode::kPermissionDenied:
      return "check the owner and the permissions of the path";
    case absl::StatusCode::kUnavailable:
      return "check that every server is up: millrace status --servers LIST";
    case absl::StatusCode::kDeadlineExceeded:
      return "check that the servers are up and not overloaded, or allow more "
             "time";
    case absl::StatusCode::kResourceExhausted:
      return "free memory or disk space, or ask for less at a time";
    case absl::StatusCode::kOutOfRange:
      return "choose a value within the limits named above";
    case absl::StatusCode::kDataLoss:
      return "the files are damaged: `millrace verify PATH` lists them; "
             "re-create them";
    case absl::StatusCode::kInternal:
      return "this is a bug in Millrace: please report it with this message";
    default:
      break;
  }
  return absl::StrCat("see `", name, " --help`");
}

// As two lines of text, or as one event of a log in JSON.
void PrintFailure(const std::string& name, const std::string& what,
                  const std::string& to_do) {
  const std::string one_line = absl::StrReplaceAll(to_do, {{"\n", " "}});
  if (CurrentLogFormat() == LogFormat::kJson) {
    return PrintLastEvent(absl::StrCat(what, "\n", one_line));
  }
  std::cerr << Printable(absl::StrCat(name, ": ", what)) << "\n"
            << Printable(absl::StrCat(name, ": ", one_line)) << std::endl;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : Subcommands(app)) names.push_back(sub->get_name());
  return names;
}

// The long options that may follow the chosen command, with their dashes.
std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  std::vector<const CLI::App*> commands = ChosenCommands(app);
  commands.push_back(&app);
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : OptionsOf(*command)) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back(absl::StrCat("--", name));
      }
    }
  }
  return names;
}

// The first argument that CLI11 did not consume, among those that look like
// options (if `option`) or among the others.
std::string FirstRemaining(const CLI::App& app, bool option) {
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    if (absl::StartsWith(argument, "-") == option) return argument;
  }
  return "";
}

// Describes the first argument that CLI11 did not expect, or says that a
// command is missing; empty if neither applies. CLI11 itself reports missing
// options first, but if one is misspelt, the unexpected name is more helpful.
std::string DescribeUnexpected(const CLI::App& app) {
  if (std::string option = FirstRemaining(app, true); !option.empty()) {
    option.resize(std::min(option.find('='), option.size()));
    return StrCat("there is no option ", option,
                  DidYouMean(option, OptionNames(app)));
  }
  const std::string word = FirstRemaining(app, false);
  const std::vector<std::string> names = CommandNames(ChosenCommand(app));
  if (names.empty()) {
    return word.empty() ? "" : StrCat("unexpected argument \"", word, "\"");
  }
  return StrCat(word.empty() ? "a command is missing"
                             : StrCat("there is no command ", word,
                                      DidYouMean(word, names)),
                "\nthe commands are ", absl::StrJoin(names, ", "), "; see `",
                FullName(app), " --help`");
}

// "--a, --b"
std::string JoinNames(const std::vector<const CLI::Option*>& options) {
  return absl::StrJoin(options, ", ",
                       [](std::string* out, const CLI::Option* option) {
                         absl::StrAppend(out, option->get_name());
                       });
}

// Describes options that cannot be used together, or of which one is missing;
// empty if there is no such conflict.
std::string DescribeConflict(const CLI::App& command) {
  for (const CLI::App* group : OptionGroups(command)) {
    if (group->get_require_option_max() != 1) continue;
    const std::vector<const CLI::Option*> members = group->get_options();
    const auto given = std::count_if(
        members.begin(), members.end(),
        [](const CLI::Option* option) { return option->count() > 0; });
    if (given == 0 && group->get_require_option_min() == 1) {
      return StrCat("one of ", JoinNames(members), " is needed");
    }
    if (given > 1) {
      return StrCat("only one of ", JoinNames(members), " can be given");
    }
  }
  for (const CLI::Option* option : OptionsOf(command)) {
    for (const CLI::Option* other : option->get_excludes()) {
      if (option->count() == 0 || other->count() == 0) continue;
      return StrCat(option->get_name(), " and ", other->get_name(),
                    " cannot be used together\nleave one out");
    }
    for (const CLI::Option* other : option->get_needs()) {
      if (option->count() == 0 || other->count() > 0) continue;
      return StrCat(option->get_name(), " needs ", other->get_name(),
                    "\ngive both, or leave ", option->get_name(), " out");
    }
  }
  return "";
}

// The name of the option or positional that CLI11's message begins with.
std::string NameAtStart(const std::string& text) {
  return text.substr(0, text.find_first_of(": "));
}

std::string DescribeConversionError(const CLI::App& app,
                                    const std::string& text) {
  constexpr absl::string_view kStart = "Could not convert: ";
  if (!absl::StartsWith(text, kStart)) return text;
  const std::string name = NameAtStart(text.substr(kStart.size()));
  const CLI::Option* option =
      FindChosenOption(app, name.substr(std::min<size_t>(2, name.size())));
  if (option == nullptr || option->results().empty()) return text;
  // CheckValues() has already refused anything that is not a number.
  return StrCat(name, ": \"", option->results().back(), "\" is out of range");
}

}  // namespace

std::string DescribeParseError(const CLI::App& app,
                               const CLI::ParseError& error) {
  std::string text = error.what();
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::RequiredError:
    case CLI::ExitCodes::RequiresError:
    case CLI::ExitCodes::ExcludesError:
    case CLI::ExitCodes::ExtrasError: {
      std::string unexpected = DescribeUnexpected(app);
      if (!unexpected.empty()) return unexpected;
      const std::string wrong = DescribeConflict(ChosenCommand(app));
      return wrong.empty() ? text : wrong;
    }
    case CLI::ExitCodes::ArgumentMismatch:
      return StrCat(NameAtStart(text), " needs a value");
    case CLI::ExitCodes::ConversionError:
      return DescribeConversionError(app, text);
    case CLI::ExitCodes::FileError:
      return StrCat("--config: ", text);
    default:
      return text;
  }
}

ExitStatus ReportStatus(const CLI::App& app, const OptionSources& sources,
                        const absl::Status& status) {
  const std::string name = FullName(app);
  if (absl::IsCancelled(status) && Interrupted()) {
    if (CurrentLogFormat() == LogFormat::kJson) {
      LogInfo("interrupted", {{"why", InterruptName()}});
    } else {
      std::cerr << name << ": interrupted" << std::endl;
    }
    return ExitStatus::kInterrupted;
  }
  const bool wrong_usage = IsUsageError(status);
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(status.message(), absl::MaxSplits('\n', 1));
  PrintFailure(
      name, StrCat(parts.first, wrong_usage ? sources.Notes(parts.first) : ""),
      parts.second.empty() ? GeneralHint(status, name) : parts.second);
  return wrong_usage ? ExitStatus::kWrongUsage : ExitStatus::kFailed;
}

ExitStatus ReportParseError(const CLI::App& app, const OptionSources& sources,
                            const CLI::ParseError& error) {
  const std::string name = FullName(app);
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(DescribeParseError(app, error), absl::MaxSplits('\n', 1));
  PrintFailure(
      name, StrCat(parts.first, sources.Notes(parts.first)),
      parts.second.empty() ? StrCat("see `", name, " --help`") : parts.second);
  return ExitStatus::kWrongUsage;
}

}  // namespace millrace
