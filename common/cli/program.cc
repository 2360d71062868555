// SPDX-License-Identifier: Apache-2.0
#include "common/cli/program.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/base/interrupt.h"
#include "common/base/mapped_file.h"
#include "common/cli/config_file.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kInterrupted = 130;

constexpr char kFooter[] =
    "Every long option may also be set by the environment variable\n"
    "MILLRACE_<OPTION> (--batch-size: MILLRACE_BATCH_SIZE) or in a file given\n"
    "with --config. Exit status: 0 done, 1 failed, 2 wrong usage, 130 "
    "interrupted.";

std::string EnvName(const std::string& option) {
  return "MILLRACE_" +
         absl::AsciiStrToUpper(absl::StrReplaceAll(option, {{"-", "_"}}));
}

using Names = std::set<std::string>;

// The long options on the command line, without dashes.
Names GivenOptions(int argc, char** argv) {
  Names given;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (!absl::ConsumePrefix(&argument, "--")) continue;
    given.emplace(argument.substr(0, argument.find('=')));
  }
  return given;
}

bool HasGivenRival(const CLI::App& app, const CLI::Option& option,
                   const Names& given) {
  for (const CLI::Option* rival : Rivals(app, option)) {
    for (const std::string& name : rival->get_lnames()) {
      if (given.contains(name)) return true;
    }
  }
  return false;
}

// `app` is a command or one of its option groups.
void NameVariables(const CLI::App& command, CLI::App& app, const Names& given) {
  for (CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.empty() || !option->get_configurable()) continue;
    if (HasGivenRival(command, *option, given)) continue;
    option->envname(EnvName(names.front()));
  }
  for (CLI::App* sub : app.get_subcommands(nullptr)) {
    if (sub->get_name().empty()) NameVariables(command, *sub, given);
  }
}

// A command's variables get their names only when it is about to parse: CLI11
// would otherwise hand a variable to the equally named options of all
// subcommands, chosen or not.
void ReadVariables(CLI::App& app, const Names& given) {
  app.preparse_callback(
      [&app, given](size_t) { NameVariables(app, app, given); });
  for (CLI::App* sub : app.get_subcommands(nullptr)) {
    if (!sub->get_name().empty()) ReadVariables(*sub, given);
  }
}

void ShowDefaults(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!option->get_default_str().empty()) continue;
    option->capture_default_str();
    const std::string shown = option->get_default_str();
    if (shown == "[]" || shown == "{}") option->default_str("");
  }
}

void FinishCommand(CLI::App& app) {
  ShowDefaults(app);
  for (CLI::App* sub : app.get_subcommands(nullptr)) {
    sub->fallthrough();  // --config is the outermost command's
    FinishCommand(*sub);
  }
}

void SetUpLogging() {
  auto logger = std::make_shared<spdlog::logger>(
      "millrace", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

std::string FullName(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* command : ChosenCommands(app)) {
    absl::StrAppend(&name, " ", command->get_name());
  }
  return name;
}

std::string GeneralHint(const absl::Status& status, const std::string& name) {
  switch (status.code()) {
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
    case absl::StatusCode::kDataLoss:
      return "the files are damaged: `millrace verify PATH` lists them; make "
             "them again";
    case absl::StatusCode::kInternal:
      return "this is a bug in Millrace: please report it with this message";
    default:
      return absl::StrCat("see `", name, " --help`");
  }
}

void PrintFailure(const std::string& name, absl::string_view what,
                  absl::string_view to_do) {
  std::cerr << name << ": " << what << "\n"
            << name << ": " << absl::StrReplaceAll(to_do, {{"\n", " "}})
            << std::endl;
}

int ReportStatus(const std::string& name, const absl::Status& status) {
  if (absl::IsCancelled(status) && Interrupted()) {
    std::cerr << name << ": interrupted" << std::endl;
    return kInterrupted;
  }
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(status.message(), absl::MaxSplits('\n', 1));
  PrintFailure(name, parts.first,
               parts.second.empty() ? GeneralHint(status, name)
                                    : std::string(parts.second));
  const bool usage =
      absl::IsInvalidArgument(status) && absl::StartsWith(parts.first, "--");
  return usage ? kWrongUsage : kFailed;
}

// CLI11 looks for what is missing before what is too much; but a misspelt
// option is both, and its name says more.
std::string WhatIsWrong(const CLI::App& app, const CLI::ParseError& error) {
  if (static_cast<CLI::ExitCodes>(error.get_exit_code()) ==
      CLI::ExitCodes::RequiredError) {
    for (const std::string& argument : app.remaining(/*recurse=*/true)) {
      if (absl::StartsWith(argument, "-")) {
        return absl::StrCat("there is no option ", argument);
      }
    }
  }
  return absl::StrReplaceAll(error.what(), {{"\n", " "}});
}

int ReportParseError(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  const std::string name = FullName(app);
  PrintFailure(name, WhatIsWrong(app, error),
               absl::StrCat("see `", name, " --help`"));
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  return code == CLI::ExitCodes::FileError ? kFailed : kWrongUsage;
}

absl::Status RunBody(const std::function<absl::Status()>& body) {
  try {
    absl::Status status = body();
    if (!status.ok()) return status;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
  // A result that did not reach its file is a failure.
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout.good()) {
    return absl::ResourceExhaustedError(
        "cannot write the results to standard output\n"
        "check that the disk is not full and that the reader is alive");
  }
  return absl::OkStatus();
}

// The part of `text` after the number, as a factor; 0 when it is no unit.
double UnitFactor(absl::string_view unit) {
  absl::ConsumeSuffix(&unit, "B");
  absl::ConsumeSuffix(&unit, "I");
  if (unit.empty()) return 1;
  const size_t power = absl::string_view("KMGT").find(unit);
  if (unit.size() != 1 || power == absl::string_view::npos) return 0;
  return std::exp2(10.0 * (power + 1));
}

}  // namespace

void FinishOptions(CLI::App& app) {
  app.set_version_flag("--version",
                       absl::StrCat(app.get_name(), " ", MILLRACE_VERSION));
  app.add_option_function<std::string>(
         "--log-level",
         [](const std::string& level) {
           spdlog::set_level(spdlog::level::from_str(level));
         },
         "What to log to stderr")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->default_str("info");
  // CLI11 reads its variables after the file, so this one is read here.
  const char* from_env = std::getenv("MILLRACE_CONFIG");
  const std::string default_file = from_env == nullptr ? "" : from_env;
  app.set_config("--config", default_file, "Read options from this file",
                 /*config_required=*/!default_file.empty());
  app.config_formatter(std::make_shared<ConfigFile>(app));
  app.footer(kFooter);
  FinishCommand(app);
}

int RunProgram(CLI::App& app, int argc, char** argv,
               const std::function<absl::Status()>& body) {
  SetUpLogging();
  ReadVariables(app, GivenOptions(argc, argv));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return ReportParseError(app, error);
  }
  InstallInterruptHandler();
  InstallTruncationHandler();
  // On by default in Debian's build of Abseil, at a cost for every lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const absl::Status status = RunBody(body);
  return status.ok() ? kDone : ReportStatus(FullName(app), status);
}

CLI::Validator ByteSize() {
  auto convert = [](std::string& text) -> std::string {
    const size_t digits = text.find_first_not_of("0123456789.");
    double number = 0;
    std::string unit = digits == std::string::npos
                           ? ""
                           : absl::AsciiStrToUpper(absl::StripAsciiWhitespace(
                                 text.substr(digits)));
    const double bytes = absl::SimpleAtod(text.substr(0, digits), &number)
                             ? number * UnitFactor(unit)
                             : 0;
    if (unit.empty() && text == "0") return "";
    if (bytes < 1 || bytes >= std::exp2(63)) {
      return absl::StrCat("'", text,
                          "' is not a number of bytes such as 1048576, 64M or "
                          "2.5G");
    }
    text = absl::StrCat(static_cast<int64_t>(bytes));
    return "";
  };
  return CLI::Validator(convert, "BYTES");
}

}  // namespace millrace
