// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/steady_time.h"
#include "common/file/file.h"
#include "common/net/host_port.h"

namespace millrace {

// Listens on every address of a HOST:PORT.
//
// Keeps one file descriptor in reserve. When the process has run out of others,
// waiting connections are accepted with it and closed at once, so that the
// clients get an error and poll() does not report them again and again.
//
// Not thread-safe, except that any thread may call Wake().
class ListeningSocket {
 public:
  // Clients can connect as soon as this returns. Port 0 picks a free port.
  // "0.0.0.0" means every IPv4 address of this host, "::" every address.
  // `field`, such as "listen", is the field that errors and messages name.
  // UNAVAILABLE: cannot listen. RESOURCE_EXHAUSTED: too few file descriptors.
  // The message names the address and the cause.
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> Open(
      const HostPort& address, const std::string& field);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int port() const { return port_; }
  // "HOST:PORT": the host as it was given, and the real port.
  const std::string& address() const { return address_; }
  // A numeric address at which this host can reach the socket.
  const std::string& local_address() const { return local_address_; }

  // A descriptor for poll(): readable when a client may be waiting, and after
  // Wake().
  int fd() const { return epoll_.get(); }
  // Makes fd() readable until the next Accept().
  void Wake() const;

  // Accepts a waiting connection; the socket is non-blocking and close-on-exec.
  // Returns -1 if no connection is waiting, if it could not be accepted, or if
  // Wake() was called. Never blocks.
  UniqueFd Accept();

  // Number of connections closed because there was no file descriptor for them.
  uint64_t dropped() const { return dropped_; }

 private:
  ListeningSocket() = default;
  absl::Status Listen(const HostPort& address);
  absl::Status WatchSockets();
  void DropConnection(int listener);
  // Stops accepting for a moment (kPause).
  void PauseAccepting();
  void ResumeAccepting();

  std::string field_;
  std::vector<UniqueFd> sockets_;
  int port_ = 0;
  std::string address_;
  std::string local_address_;
  UniqueFd epoll_;  // watches sockets_, wake_ and timer_
  UniqueFd wake_;
  UniqueFd timer_;  // ends a pause
  UniqueFd spare_;  // the descriptor in reserve
  uint64_t dropped_ = 0;
  uint64_t reported_ = 0;  // part of dropped_ that has been logged
  SteadyTime next_warning_;
};

}  // namespace millrace
