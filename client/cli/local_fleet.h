// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/child_process.h"

namespace millrace {

// Server processes on loopback, for `millrace up`. No server outlives this
// process, however it ends.
// Threads: only the one that created the object. While the object lives,
// SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked in that thread, which waits
// for them. No other threads may have been started before.
class LocalFleet {
 public:
  // `program`: path of millrace-server.
  explicit LocalFleet(std::filesystem::path program);
  // Asks the servers to drain, kills them after 30 s or at a second signal, and
  // waits for them to end.
  ~LocalFleet();
  LocalFleet(const LocalFleet&) = delete;
  LocalFleet& operator=(const LocalFleet&) = delete;

  // Starts `servers` (>= 1) that together serve all `parts` partitions of
  // `store`; if there are more servers than partitions, some are replicas.
  // Waits until all of them listen, and returns their LIST.
  // UNAVAILABLE: a server ended, or did not listen within 30 s. CANCELLED: a
  // signal arrived. INTERNAL: the system could not start a process.
  absl::StatusOr<std::string> Start(const std::filesystem::path& store,
                                    int parts, int servers);

  // Waits until SIGINT, SIGTERM or SIGHUP arrives. UNAVAILABLE: a server ended
  // first (names its partitions).
  absl::Status WaitForSignal();

 private:
  struct Server {
    std::string partitions;
    std::filesystem::path port_file;
    ChildProcess process;
  };

  // Starts the server of `partitions`, which writes its port to `port_file`.
  absl::Status StartOne(const std::filesystem::path& store,
                        const std::string& partitions,
                        const std::filesystem::path& port_file);
  absl::StatusOr<std::string> WaitForPort(const Server& server);
  // Reaps a server that has ended and reports it; OK if none has.
  absl::Status Reap();
  void SignalAll(int signal);

  const std::filesystem::path program_;
  sigset_t waited_for_;
  sigset_t mask_before_;
  std::filesystem::path port_folder_;
  std::vector<Server> servers_;
};

// The partitions of server `index` of `servers`, as a value of --partition.
std::string PartitionsOfServer(int index, int servers, int parts);

}  // namespace millrace
