// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/file/file.h"
#include "common/net/listening_socket.h"
#include "server/load/open_connections.h"

namespace millrace {

// Accepts a server's connections on a thread of its own and hands on those that
// the limits allow; all others are closed at once. When the overall limit is
// reached, each address gets a fair share of it (see OpenConnections). The
// acceptor carries on while the process is out of file descriptors (see
// ListeningSocket).
//
// gRPC's own listener has no limits, and stops for good the first time an
// accept fails.
//
// States: accepting -> stopped.
// Threads: any thread may call any method, but Stop() must not run concurrently
// with itself.
class Acceptor {
 public:
  // Takes ownership of a connection, which is non-blocking and close-on-exec.
  // Runs on the acceptor's thread, so no other connection is accepted
  // meanwhile.
  using Take = std::function<void(UniqueFd connection)>;

  Acceptor(std::unique_ptr<ListeningSocket> socket,
           const ConnectionLimits& limits, Take take);
  // Calls Stop().
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Closes the port. `take` is not running, and is never called again, once
  // this returns. Idempotent.
  void Stop();

  // Number of open connections.
  int open() const;
  // Number of connections closed on arrival so far, because of the limits or
  // because the process was out of descriptors.
  uint64_t refused() const;
  // Number of connections closed so far to make room for other addresses.
  uint64_t ended_for_others() const;

 private:
  using Verdict = OpenConnections::Verdict;

  // Counts events that no warning has reported yet.
  struct Unreported {
    // Counts one event. Returns how many to report now; 0 if the last warning
    // was only moments ago.
    uint64_t Add();

    uint64_t count = 0;
    SteadyTime next_warning;
  };

  void Run();
  void Admit(UniqueFd connection);
  void WarnOfRefusal(const std::string& address, Verdict verdict);
  void WarnOfEnd(const std::string& ended, const std::string& address);

  const ConnectionLimits limits_;
  const Take take_;
  std::atomic<bool> stopping_{false};

  std::unique_ptr<ListeningSocket> socket_;  // null once stopped

  // Used only by thread_.
  Unreported unreported_refusals_;
  Unreported unreported_ends_;

  mutable Mutex mutex_;
  mutable OpenConnections connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t ended_for_others_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;  // last, because it uses all of the above
};

}  // namespace millrace
