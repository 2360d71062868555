// SPDX-License-Identifier: Apache-2.0
#include "client/train/main/cuda_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "client/flags/option_errors.h"
#include "client/train/main/train_advice.h"
#include "common/base/child_process.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/base/strings.h"
#include "common/base/unique_fd.h"

namespace millrace {
namespace {

constexpr char kProgram[] = "millrace-train-cuda";
// Comes before each line that a trainer prints of an error.
constexpr char kPrefix[] = "millrace-train: ";
constexpr char kProbe[] = "--probe-device";
constexpr char kAlone[] = "alone";  // no rank of the environment's group
constexpr char kInstallAdvice[] =
    "\ninstall the package of this name, or build it with -DMILLRACE_CUDA=ON "
    "after deploy/setup.sh --cuda --torch cuda; or use --device cpu";
// The first start of a GPU may take long on hosts with many of them.
constexpr absl::Duration kProbeTimeout = absl::Minutes(2);
constexpr absl::Duration kSlice = absl::Milliseconds(100);

struct Probe {
  int status = 0;        // as of waitpid()
  std::string messages;  // of its stderr
};

// Appends what can be read without waiting.
void ReadSome(const UniqueFd& pipe, std::string& text) {
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(pipe.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<size_t>(count));
  }
}

absl::StatusOr<Probe> RunProbe(const std::string& program, bool alone) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
    return absl::InternalError(StrCat("pipe: ", std::strerror(errno)));
  }
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  ChildProcessOptions options;
  options.arguments = {program, kProbe};
  if (alone) options.arguments.emplace_back(kAlone);
  options.stderr_fd = write_end.get();
  sigprocmask(SIG_SETMASK, nullptr, &options.signal_mask);
  MILLRACE_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(options));
  write_end = UniqueFd();
  Probe probe;
  const SteadyTime deadline = SteadyNow() + kProbeTimeout;
  while (true) {
    pollfd ended{child.end_fd(), POLLIN, 0};
    poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(kSlice)));
    ReadSome(read_end, probe.messages);
    const std::optional<int> status = child.TryWait();
    if (status.has_value()) {
      ReadSome(read_end, probe.messages);
      probe.status = *status;
      return probe;
    }
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    if (SteadyNow() < deadline) continue;
    return absl::FailedPreconditionError(StrCat(
        kProgram, " has not found out within ",
        absl::FormatDuration(kProbeTimeout),
        " whether it can use a GPU\nsee whether nvidia-smi works, or use "
        "--device cpu"));
  }
}

// The error of a program that has said why it cannot train, as RunProgram()
// prints it, or that the system could not start.
absl::Status FailureOf(const Probe& probe) {
  absl::string_view text = absl::StripSuffix(probe.messages, "\n");
  std::string message;
  while (!text.empty()) {
    absl::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (absl::ConsumePrefix(&line, kPrefix)) {
      absl::StrAppend(&message, message.empty() ? "" : "\n", line);
    }
  }
  if (!message.empty()) return absl::FailedPreconditionError(message);
  const absl::string_view first =
      absl::string_view(probe.messages).substr(0, probe.messages.find('\n'));
  return absl::FailedPreconditionError(StrCat(
      kProgram, " ", DescribeWaitStatus(probe.status),
      first.empty() ? "" : StrCat(": ", first),
      "\ninstall what it lacks with deploy/setup.sh --torch cuda, or use "
      "--device cpu"));
}

absl::Status OpenForProbe(const AcceleratorKind& kind, bool alone) {
  GroupAddress rank;
  if (!alone) {
    MILLRACE_ASSIGN_OR_RETURN(rank, GroupFromEnvironment());
  }
  return kind.open(rank, kind.backend).status();
}

}  // namespace

bool IsProbe(int argc, char** argv) {
  return argc >= 2 && std::string_view(argv[1]) == kProbe;
}

int AnswerProbe(int argc, char** argv, const AcceleratorKind& kind) {
  const bool alone = argc > 2 && std::string_view(argv[2]) == kAlone;
  const absl::Status status =
      InTermsOfOptions(OpenForProbe(kind, alone), TrainAdvice());
  if (status.ok()) return 0;
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    std::fprintf(stderr, "%s%.*s\n", kPrefix, static_cast<int>(line.size()),
                 line.data());
  }
  return 1;
}

absl::Status RunCudaProgram(char** argv, bool alone) {
  std::error_code error;
  const std::filesystem::path program = PathBesideThisProgram(kProgram);
  if (!std::filesystem::exists(program, error)) {
    return absl::FailedPreconditionError(
        StrCat("training on GPUs needs ", program.string(),
               ", which is not there", kInstallAdvice));
  }
  MILLRACE_ASSIGN_OR_RETURN(const Probe probe,
                            RunProbe(program.string(), alone));
  if (!WIFEXITED(probe.status) || WEXITSTATUS(probe.status) != 0) {
    return FailureOf(probe);
  }
  execv(program.c_str(), argv);
  return absl::FailedPreconditionError(StrCat("cannot run ", program.string(),
                                              ": ", std::strerror(errno),
                                              kInstallAdvice));
}

}  // namespace millrace
