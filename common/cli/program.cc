// SPDX-License-Identifier: Apache-2.0
#include "common/cli/program.h"

#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/base/file_limit.h"
#include "common/base/interrupt.h"
#include "common/base/mapped_file.h"
#include "common/cli/config_file.h"
#include "common/cli/numbers.h"
#include "common/cli/report.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace millrace {
namespace {

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
    // What must be given has no default, whatever its variable holds.
    if (option->get_required() || !option->get_default_str().empty()) continue;
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

constexpr char kFreeMemory[] = "free memory, or ask for less at once";

// Of the program that runs, for OnTerminate(); the text is of the CLI::App.
const char* program_name = "";

// Allocates nothing. Nothing can be done about a stderr that is gone.
void WriteError(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

// An exception that no function of a thread catches ends the process here.
[[noreturn]] void OnTerminate() {
  const std::exception_ptr error = std::current_exception();
  try {
    if (error != nullptr) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    for (const char* text : {program_name, ": out of memory\n", program_name,
                             ": ", kFreeMemory, "\n"}) {
      WriteError(text);
    }
    _exit(static_cast<int>(ExitStatus::kFailed));
  } catch (...) {
    // A bug: the core dump shows where.
  }
  std::abort();
}

absl::Status RunBody(const std::function<absl::Status()>& body) {
  try {
    absl::Status status = body();
    if (!status.ok()) return status;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory\n", kFreeMemory));
  } catch (const std::length_error&) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "out of memory: more was asked for than any memory holds\n",
        kFreeMemory));
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
  CheckWholeNumbers(app);
  app.footer(kFooter);
  FinishCommand(app);
}

int RunProgram(CLI::App& app, int argc, char** argv,
               const std::function<absl::Status()>& body) {
  SetUpLogging();
  // gRPC's own log lines are for those who ask for them; errors reach the
  // user as statuses.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  ReadVariables(app, GivenOptions(argc, argv));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return static_cast<int>(ReportParseError(app, error));
  }
  program_name = app.get_name().c_str();
  std::set_terminate(OnTerminate);
  InstallInterruptHandler();
  InstallTruncationHandler();
  RaiseFileLimit();
  // A file that may not grow (ulimit -f) is an error of its write, as a full
  // disk is, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // On by default in Debian's build of Abseil, at a cost for every lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const TruncationWatch watch;
  const absl::Status status = RunBody(body);
  return static_cast<int>(status.ok() ? ExitStatus::kDone
                                      : ReportStatus(FullName(app), status));
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
