// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace millrace {

// Server processes on loopback, for `millrace up`. No server outlives this
// process, however it ends.
// Threads: one; while it lives, SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked
// in the thread that made it, to be waited for. Start no other thread before.
class LocalFleet {
 public:
  // `program` is millrace-server.
  explicit LocalFleet(std::filesystem::path program);
  // Asks the servers to drain, ends them after 30 s or at a second signal,
  // and waits for them.
  ~LocalFleet();
  LocalFleet(const LocalFleet&) = delete;
  LocalFleet& operator=(const LocalFleet&) = delete;

  // Starts `servers` (>= 1) that together serve all `parts` partitions of
  // `store`; more servers than partitions are replicas. Waits until all
  // listen and returns their LIST.
  // UNAVAILABLE: a server ended, or did not listen within 30 s; CANCELLED: a
  // signal came; INTERNAL: the system refused a process.
  absl::StatusOr<std::string> Start(const std::filesystem::path& store,
                                    int parts, int servers);

  // Until SIGINT, SIGTERM or SIGHUP: OK. UNAVAILABLE: a server ended (names its
  // partitions).
  absl::Status WaitForSignal();

 private:
  struct Server {
    pid_t pid = -1;  // -1: has ended
    std::string partitions;
    std::filesystem::path port_file;
  };

  absl::Status StartOne(const std::filesystem::path& store, Server& server);
  absl::StatusOr<std::string> WaitForPort(const Server& server);
  // Collects a server that has ended; OK when there is none.
  absl::Status Reap();
  void SignalAll(int signal);

  const std::filesystem::path program_;
  sigset_t waited_for_;
  sigset_t mask_before_;
  std::filesystem::path port_folder_;
  std::vector<Server> servers_;
};

// The partitions of server `index` of `servers`, as --partition takes them.
std::string PartitionsOfServer(int index, int servers, int parts);

}  // namespace millrace
