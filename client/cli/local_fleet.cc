// SPDX-License-Identifier: Apache-2.0
#include "client/cli/local_fleet.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/base/child_process.h"
#include "common/base/host_memory.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/file/file.h"

namespace millrace {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(30);
constexpr absl::Duration kStopLimit = absl::Seconds(30);
// How often to look for the file through which a server reports its port.
constexpr absl::Duration kPortFileInterval = absl::Milliseconds(10);

// Minimum memory of a server, not counting the code that all of them share.
constexpr int64_t kServerBytes = 10 << 20;

constexpr char kPeersFile[] = "peers";

// SIGHUP arrives when a terminal is closed.
bool MeansStop(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP;
}

// Returns the signal received, or 0 after `limit`.
int WaitSignal(const sigset_t& signals, absl::Duration limit) {
  const timespec time = absl::ToTimespec(limit);
  const int signal = sigtimedwait(&signals, nullptr, &time);
  return signal < 0 ? 0 : signal;
}

}  // namespace

std::string PartitionsOfServer(int index, int servers, int parts) {
  if (servers > parts) return absl::StrCat(index % parts);
  std::vector<int> own;
  for (int part = index * parts / servers; part < (index + 1) * parts / servers;
       ++part) {
    own.push_back(part);
  }
  return absl::StrJoin(own, ",");
}

LocalFleet::LocalFleet(std::filesystem::path program)
    : program_(std::move(program)) {
  sigemptyset(&waited_for_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) {
    sigaddset(&waited_for_, signal);
  }
  sigprocmask(SIG_BLOCK, &waited_for_, &mask_before_);
}

LocalFleet::~LocalFleet() {
  SignalAll(SIGTERM);
  const SteadyTime kill_at = SteadyNow() + kStopLimit;
  for (Server& server : servers_) {
    while (server.process.running() && !server.process.TryWait().has_value()) {
      const absl::Duration left = kill_at - SteadyNow();
      // Also wakes when a server ends.
      const int signal =
          WaitSignal(waited_for_, std::max(left, absl::Milliseconds(100)));
      if (MeansStop(signal) || left <= absl::ZeroDuration()) SignalAll(SIGKILL);
    }
  }
  std::error_code ignored;
  if (!port_folder_.empty()) std::filesystem::remove_all(port_folder_, ignored);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

absl::StatusOr<std::string> LocalFleet::Start(
    const std::filesystem::path& store, int parts, int servers) {
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(absl::StrCat("starting ", servers, " servers"),
                  MemoryNeed{.process = kServerBytes,
                             .host = SaturatedProduct({servers, kServerBytes})},
                  "use fewer --servers"));
  std::string folder =
      std::filesystem::temp_directory_path() / "millrace-up-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return absl::InternalError(
        absl::StrCat(folder, ": ", std::strerror(errno)));
  }
  port_folder_ = folder;
  // The servers read this file repeatedly, so it can be filled once all ports
  // are known.
  MILLRACE_RETURN_IF_ERROR(WriteNewFile(port_folder_ / kPeersFile, ""));
  for (int i = 0; i < servers; ++i) {
    MILLRACE_RETURN_IF_ERROR(StartOne(store,
                                      PartitionsOfServer(i, servers, parts),
                                      port_folder_ / absl::StrCat("port-", i)));
  }
  std::vector<std::string> addresses;
  for (const Server& server : servers_) {
    MILLRACE_ASSIGN_OR_RETURN(const std::string port, WaitForPort(server));
    addresses.push_back(absl::StrCat("127.0.0.1:", port));
  }
  const std::string list = absl::StrJoin(addresses, ",");
  const std::filesystem::path whole = port_folder_ / "whole";
  MILLRACE_RETURN_IF_ERROR(WriteNewFile(whole, list));
  std::filesystem::rename(whole, port_folder_ / kPeersFile);
  return list;
}

absl::Status LocalFleet::StartOne(const std::filesystem::path& store,
                                  const std::string& partitions,
                                  const std::filesystem::path& port_file) {
  const std::string peers =
      absl::StrCat("@", (port_folder_ / kPeersFile).string());
  ChildProcessOptions options;
  options.arguments = {program_,   "--store",  store,         "--partition",
                       partitions, "--listen", "127.0.0.1:0", "--port-file",
                       port_file,  "--peers",  peers};
  if (CurrentLogFormat() == LogFormat::kJson) {
    options.environment = {{"MILLRACE_LOG_FORMAT", "json"}};
  }
  options.signal_mask = mask_before_;
  options.signal_at_our_death = SIGTERM;
  MILLRACE_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(options));
  servers_.push_back({partitions, port_file, std::move(process)});
  return absl::OkStatus();
}

absl::StatusOr<std::string> LocalFleet::WaitForPort(const Server& server) {
  const SteadyTime deadline = SteadyNow() + kStartLimit;
  while (SteadyNow() < deadline) {
    std::string port;
    if (std::ifstream(server.port_file) >> port) return port;
    const int signal = WaitSignal(waited_for_, kPortFileInterval);
    if (MeansStop(signal)) {
      return absl::CancelledError("stopped before all servers were up");
    }
    MILLRACE_RETURN_IF_ERROR(Reap());
  }
  return absl::UnavailableError(
      absl::StrCat("the server of partitions ", server.partitions,
                   " did not listen within ", absl::FormatDuration(kStartLimit),
                   "\nits log above says what it is doing"));
}

absl::Status LocalFleet::WaitForSignal() {
  while (true) {
    const int signal = WaitSignal(waited_for_, absl::Hours(24));
    if (MeansStop(signal)) return absl::OkStatus();
    MILLRACE_RETURN_IF_ERROR(Reap());
  }
}

absl::Status LocalFleet::Reap() {
  for (Server& server : servers_) {
    const std::optional<int> status = server.process.TryWait();
    if (!status.has_value()) continue;
    return absl::UnavailableError(
        absl::StrCat("the server of partitions ", server.partitions, " ",
                     DescribeWaitStatus(*status),
                     "; the others are being stopped\nits log above says why"));
  }
  return absl::OkStatus();
}

void LocalFleet::SignalAll(int signal) {
  for (Server& server : servers_) server.process.Signal(signal);
}

}  // namespace millrace
