// SPDX-License-Identifier: Apache-2.0
#include "common/cli/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/civil_time.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "common/cli/command_tree.h"
#include "common/cli/completion.h"
#include "common/cli/help.h"
#include "common/cli/man_page.h"
#include "common/cli/numbers.h"
#include "common/cli/option_sources.h"
#include "common/cli/option_texts.h"
#include "common/cli/print_config.h"
#include "common/cli/report.h"
#include "common/cli/words.h"
#include "common/file/file_limit.h"
#include "common/file/mapped_file.h"

namespace millrace {
namespace {

// If an option that takes one value is given repeatedly, the last value counts,
// so that scripts can append options to a command line. Options that collect
// all their values (TakeAll) are left alone.
void FinishOption(CLI::Option& option) {
  const bool adds_up =
      option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (option.get_items_expected_max() == 1 && !option.get_positional() &&
      !adds_up) {
    option.take_last();
  }
  if (option.get_delimiter() != '\0') option.transform(CommaList());
  if (option.get_required() || !option.get_default_str().empty()) return;
  option.capture_default_str();
  const std::string shown = option.get_default_str();
  if (shown == "[]" || shown == "{}") option.default_str("");
}

void FinishCommand(CLI::App& app) {
  for (CLI::Option* option : OptionsOf(app)) FinishOption(*option);
  for (CLI::App* sub : Subcommands(app)) {
    sub->fallthrough();  // --config belongs to the outermost command
    FinishCommand(*sub);
  }
}

// CLI11 would open a named pipe and block until something is written to it.
CLI::Validator RegularFile() {
  return CLI::Validator(
      [](const std::string& path) -> std::string {
        struct stat info {};
        if (stat(path.c_str(), &info) != 0) {
          return absl::StrCat(path, ": ", std::strerror(errno));
        }
        return S_ISREG(info.st_mode)
                   ? ""
                   : absl::StrCat(path, " is not a regular file");
      },
      "");
}

constexpr char kLogFormatOption[] = "--log-format";
constexpr char kJson[] = "json";

// Decides the format before the command line is parsed, for errors in it.
void ReadLogFormat(int argc, char** argv) {
  const char* variable = std::getenv("MILLRACE_LOG_FORMAT");
  std::string format = variable == nullptr ? "" : variable;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == kLogFormatOption && i + 1 < argc) format = argv[i + 1];
    if (absl::ConsumePrefix(&argument, kLogFormatOption) &&
        absl::ConsumePrefix(&argument, "=")) {
      format = std::string(argument);
    }
  }
  SetLogFormat(format == kJson ? LogFormat::kJson : LogFormat::kText);
}

LogLevel LevelOf(const std::string& word) {
  if (word == "debug") return LogLevel::kDebug;
  if (word == "warning") return LogLevel::kWarning;
  if (word == "error") return LogLevel::kError;
  return word == "off" ? LogLevel::kOff : LogLevel::kInfo;
}

constexpr char kFreeMemory[] = "free memory, or ask for less at a time";

// Used by OnTerminate(). The CLI::App owns the text.
const char* program_name = "";

// Reports exhausted memory as ReportStatus() would, but does not allocate.
void WriteOutOfMemory() {
  char text[512];
  int bytes = 0;
  if (CurrentLogFormat() == LogFormat::kJson) {
    const absl::Time now = absl::Now();
    const absl::CivilSecond time =
        absl::ToCivilSecond(now, absl::UTCTimeZone());
    // The name is a literal, which ends with '\0'.
    bytes = std::snprintf(
        text, sizeof text,
        R"({"time":"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ","level":"error",)"
        R"("component":"%s","message":"out of memory","advice":"%s"})"
        "\n",
        static_cast<int>(time.year()), time.month(), time.day(), time.hour(),
        time.minute(), time.second(),
        static_cast<int>(absl::ToUnixMillis(now) % 1000),
        ComponentName(OwnComponent()).data(), kFreeMemory);
  } else {
    bytes = std::snprintf(text, sizeof text, "%s: out of memory\n%s: %s\n",
                          program_name, program_name, kFreeMemory);
  }
  const size_t written = std::min(static_cast<size_t>(bytes), sizeof text - 1);
  // There is nowhere to report that this fails.
  if (write(STDERR_FILENO, text, written) < 0) return;
}

// Called when an exception is not caught.
[[noreturn]] void OnTerminate() {
  const std::exception_ptr error = std::current_exception();
  try {
    if (error != nullptr) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    WriteOutOfMemory();
    _exit(static_cast<int>(ExitStatus::kFailed));
  } catch (...) {
    // This is a bug; the core dump shows where.
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
    return absl::ResourceExhaustedError(
        absl::StrCat("out of memory: the request is too large\n", kFreeMemory));
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      return absl::InternalError(error.what());
    }
    return absl::ResourceExhaustedError(
        "the system cannot start more threads\nuse a smaller --threads, or "
        "raise the limits on processes and memory");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
  return FlushResults();
}

// The factor that a unit such as "K" or "KIB" stands for; 0 if `unit` is not a
// unit.
double UnitFactor(absl::string_view unit) {
  absl::ConsumeSuffix(&unit, "B");
  absl::ConsumeSuffix(&unit, "I");
  if (unit.empty()) return 1;
  const size_t power = absl::string_view("KMGT").find(unit);
  if (unit.size() != 1 || power == absl::string_view::npos) return 0;
  return std::exp2(10.0 * (power + 1));
}

// Does the set-up that does not depend on the command line.
void PrepareProcess(const CLI::App& app) {
  program_name = app.get_name().c_str();
  // Makes the time zone, which WriteOutOfMemory() must not.
  absl::ToCivilSecond(absl::Now(), absl::UTCTimeZone());
  std::set_terminate(OnTerminate);
  InstallInterruptHandler();
  InstallTruncationHandler();
  RaiseFileLimit();
  // When a file would exceed its size limit (ulimit -f), the write should fail,
  // as on a full disk, instead of killing the process.
  std::signal(SIGXFSZ, SIG_IGN);
  // Debian's build of Abseil enables deadlock detection, which makes every lock
  // slower.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

int ExitStatusOf(const CLI::App& app, const OptionSources& sources,
                 const absl::Status& status) {
  return static_cast<int>(status.ok() ? ExitStatus::kDone
                                      : ReportStatus(app, sources, status));
}

}  // namespace

void FinishOptions(CLI::App& app) {
  app.set_version_flag("--version",
                       absl::StrCat(app.get_name(), " ", MILLRACE_VERSION),
                       "print the version and exit")
      ->group(kGeneralOptions);
  app.add_option_function<std::string>(
         "--log-level",
         [](const std::string& level) { SetLogLevel(LevelOf(level)); },
         "what to log to stderr")
      ->check(OneOf({"debug", "info", "warning", "error", "off"}))
      ->default_str("info")
      ->group(kGeneralOptions);
  app.add_option_function<std::string>(
         kLogFormatOption,
         [](const std::string& format) {
           SetLogFormat(format == kJson ? LogFormat::kJson : LogFormat::kText);
         },
         "how to log: a line of text or a JSON object for each event")
      ->check(OneOf({"text", kJson}))
      ->default_str("text")
      ->group(kGeneralOptions);
  app.add_flag_function(
         kPrintConfigOption, [](int64_t) {},
         "print these options as a file for --config, and exit")
      ->configurable(false)
      ->group(kGeneralOptions);
  // CLI11 reads environment variables after the file, so this one is read here.
  const char* from_env = std::getenv("MILLRACE_CONFIG");
  const std::string default_file = from_env == nullptr ? "" : from_env;
  app.set_config("--config", default_file, "read options from this file",
                 /*config_required=*/!default_file.empty())
      ->check(RegularFile())
      ->type_name("FILE")
      ->group(kGeneralOptions);
  CheckValues(app);
  FinishCommand(app);
  FinishHelp(app);
}

absl::Status FlushResults() {
  std::cout.flush();
  // The streams also remember earlier failures.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 ||
      !std::cout.good()) {
    return absl::ResourceExhaustedError(
        "cannot write the results to standard output\n"
        "check that the disk is not full and that the reader is alive");
  }
  return absl::OkStatus();
}

int RunProgram(CLI::App& app, int argc, char** argv,
               const std::function<absl::Status()>& body,
               LogComponent component) {
  SetUpLog(component);
  ReadLogFormat(argc, argv);
  // gRPC logs nothing unless the user sets GRPC_VERBOSITY; its errors reach the
  // user as statuses.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  if (IsCompletionRequest(argc, argv)) {
    std::cout << Completions(app, {argv + 2, argv + argc});
    return 0;
  }
  if (IsManPageRequest(argc, argv)) {
    const std::string page = ManPage(app, {argv + 2, argv + argc});
    std::cout << page;
    return static_cast<int>(page.empty() ? ExitStatus::kWrongUsage
                                         : ExitStatus::kDone);
  }
  OptionSources sources(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& information) {
    app.exit(information);
    return ExitStatusOf(app, sources, FlushResults());
  } catch (const CLI::ParseError& error) {
    sources.DropMisspeltVariables();
    return static_cast<int>(ReportParseError(app, sources, error));
  }
  sources.DropMisspeltVariables();
  PrepareProcess(app);
  if (app.count(kPrintConfigOption) > 0) {
    return ExitStatusOf(app, sources,
                        RunBody([&] { return PrintConfig(app, sources); }));
  }
  const TruncationWatch watch;
  return ExitStatusOf(app, sources, RunBody(body));
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
