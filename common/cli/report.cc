// SPDX-License-Identifier: Apache-2.0
#include "common/cli/report.h"

#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/interrupt.h"
#include "common/cli/config_file.h"

namespace millrace {
namespace {

// The bytes of the character that `text` (not empty) begins with; 0 when it
// begins with none that can be shown: a control character, no UTF-8.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&text](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  constexpr unsigned char kDelete = 0x7f;
  if (byte(0) <= kDelete) return byte(0) >= ' ' && byte(0) != kDelete;
  const size_t bytes = byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
  if (byte(0) < 0xc0 || byte(0) > 0xf7 || text.size() < bytes) return 0;
  uint32_t code = byte(0) & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  // From 0xa0: the control characters lie below. Shorter forms are the only
  // right ones, and surrogates are none.
  constexpr uint32_t kFirst[] = {0xa0, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kFirst[bytes - 2] || code > 0x10ffff || surrogate ? 0 : bytes;
}

std::string Printable(absl::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) {
      absl::StrAppend(&shown, "\\x", absl::BytesToHexString(text.substr(0, 1)));
    } else {
      shown.append(text.data(), bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return shown;
}

// An option that cannot be as it was given, in the words of the body.
bool IsWrongUsage(const absl::Status& status) {
  return (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) &&
         absl::StartsWith(status.message(), "--");
}

std::string GeneralHint(const absl::Status& status, const std::string& name) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      if (IsWrongUsage(status)) break;
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
      return "free memory or disk space, or ask for less at once";
    case absl::StatusCode::kOutOfRange:
      return "choose a value within the limits named above";
    case absl::StatusCode::kDataLoss:
      return "the files are damaged: `millrace verify PATH` lists them; make "
             "them again";
    case absl::StatusCode::kInternal:
      return "this is a bug in Millrace: please report it with this message";
    default:
      break;
  }
  return absl::StrCat("see `", name, " --help`");
}

void PrintFailure(const std::string& name, absl::string_view what,
                  absl::string_view to_do) {
  std::cerr << Printable(absl::StrCat(name, ": ", what)) << "\n"
            << Printable(absl::StrCat(
                   name, ": ", absl::StrReplaceAll(to_do, {{"\n", " "}})))
            << std::endl;
}

// The innermost command that was chosen.
const CLI::App& ChosenCommand(const CLI::App& app) {
  const std::vector<const CLI::App*> chosen = ChosenCommands(app);
  return chosen.empty() ? app : *chosen.back();
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    if (!sub->get_name().empty()) names.push_back(sub->get_name());
  }
  return names;
}

// What CLI11 did not take, whether it looks like an option or not.
std::string FirstRemaining(const CLI::App& app, bool option) {
  for (const std::string& argument : app.remaining(/*recurse=*/true)) {
    if (absl::StartsWith(argument, "-") == option) return argument;
  }
  return "";
}

// CLI11 looks for what is missing before what is too much; but a misspelt
// option or command is both, and its name says more.
std::string WhatIsOdd(const CLI::App& app, const CLI::ParseError& error) {
  if (const std::string option = FirstRemaining(app, true); !option.empty()) {
    return absl::StrCat("there is no option ", option);
  }
  if (CommandNames(ChosenCommand(app)).empty()) {
    return absl::StrReplaceAll(error.what(), {{"\n", " "}});
  }
  const std::string word = FirstRemaining(app, false);
  return word.empty() ? "a command is missing"
                      : absl::StrCat("there is no command ", word);
}

}  // namespace

std::string FullName(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* command : ChosenCommands(app)) {
    absl::StrAppend(&name, " ", command->get_name());
  }
  return name;
}

ExitStatus ReportStatus(const std::string& name, const absl::Status& status) {
  if (absl::IsCancelled(status) && Interrupted()) {
    std::cerr << name << ": interrupted" << std::endl;
    return ExitStatus::kInterrupted;
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(status.message(), absl::MaxSplits('\n', 1));
  PrintFailure(name, parts.first,
               parts.second.empty() ? GeneralHint(status, name)
                                    : std::string(parts.second));
  return IsWrongUsage(status) ? ExitStatus::kWrongUsage : ExitStatus::kFailed;
}

ExitStatus ReportParseError(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {  // --help, --version
    app.exit(error);
    return ExitStatus::kDone;
  }
  const std::string name = FullName(app);
  std::string what = absl::StrReplaceAll(error.what(), {{"\n", " "}});
  std::string to_do = absl::StrCat("see `", name, " --help`");
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::RequiredError:
    case CLI::ExitCodes::ExtrasError: {
      what = WhatIsOdd(app, error);
      const std::vector<std::string> names = CommandNames(ChosenCommand(app));
      if (!names.empty()) {
        to_do = absl::StrCat("the commands are ", absl::StrJoin(names, ", "),
                             "; ", to_do);
      }
      break;
    }
    case CLI::ExitCodes::FileError:
      what = absl::StrCat("--config: ", what);
      break;
    default:
      break;
  }
  PrintFailure(name, what, to_do);
  return ExitStatus::kWrongUsage;
}

}  // namespace millrace
