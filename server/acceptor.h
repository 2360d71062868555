// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/steady_time.h"
#include "common/net/listening_socket.h"
#include "server/open_connections.h"

namespace millrace {

// Accepts a server's connections, on a thread of its own, and hands on those
// that the limits allow; others are closed at once. Where the limit of all is
// reached, addresses have fair shares (see OpenConnections). It goes on while
// the process is out of file descriptors (see ListeningSocket).
//
// gRPC's own listener knows no limits, and stops for good when an accept fails
// once.
//
// States: accepting -> stopped.
// Threads: any thread may call any method; Stop() once at a time.
class Acceptor {
 public:
  // Takes over a connection, which is non-blocking and close-on-exec. Runs on
  // the acceptor's thread, which accepts no other meanwhile.
  using Take = std::function<void(UniqueFd connection)>;

  Acceptor(std::unique_ptr<ListeningSocket> socket,
           const ConnectionLimits& limits, Take take);
  // Stop().
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Closes the port; when it returns, `take` does not run any more.
  // Idempotent.
  void Stop();

  // How many connections are open.
  int open() const;
  // How many were closed at once so far, for want of a descriptor or because
  // of the limits.
  uint64_t refused() const;
  // How many were ended so far to make room for those of other addresses.
  uint64_t ended_for_others() const;

 private:
  using Verdict = OpenConnections::Verdict;

  // Events that have not been warned of yet.
  struct Unreported {
    // Adds one. Returns how many to warn of now; 0: not yet, a warning was
    // moments ago.
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

  // Used by the thread only.
  Unreported unreported_refusals_;
  Unreported unreported_ends_;

  mutable Mutex mutex_;
  mutable OpenConnections connections_ ABSL_GUARDED_BY(mutex_);
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t ended_for_others_ ABSL_GUARDED_BY(mutex_) = 0;

  std::thread thread_;  // last: uses all of the above
};

}  // namespace millrace
