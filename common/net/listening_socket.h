// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/file.h"
#include "common/base/steady_time.h"
#include "common/net/host_port.h"

namespace millrace {

// Listens at every address of a HOST:PORT.
//
// It keeps a file descriptor in reserve. When the process has no other left,
// those who wait are accepted with it and closed, so that they learn of it and
// poll() does not report them again and again.
//
// Threads: one at a time, but any may call Wake().
class ListeningSocket {
 public:
  // Clients can connect from the moment this returns. Port 0 takes a free
  // one. "0.0.0.0" is every IPv4 address of this host, "::" every address.
  // `option`, such as "--listen", is for messages.
  // UNAVAILABLE: cannot listen (names the address and the cause).
  static absl::StatusOr<std::unique_ptr<ListeningSocket>> Open(
      const HostPort& address, const std::string& option);
  ~ListeningSocket();
  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;

  int port() const { return port_; }
  // "HOST:PORT": the host as it was given, and the real port.
  const std::string& address() const { return address_; }
  // An address by which this host reaches the socket, in numbers.
  const std::string& local_address() const { return local_address_; }

  // Readable when a client may be waiting, and after Wake(); for poll().
  int fd() const { return epoll_.get(); }
  // Makes fd() readable until the next Accept().
  void Wake() const;

  // A connection that has been waiting, non-blocking and close-on-exec.
  // -1: no connection is waiting, it could not be accepted, or Wake() was
  // called. Never blocks.
  UniqueFd Accept();

  // Connections that were closed for want of a file descriptor.
  uint64_t dropped() const { return dropped_; }

 private:
  ListeningSocket() = default;
  absl::Status Listen(const HostPort& address);
  absl::Status WatchSockets();
  void DropConnection(int listener);
  // Stops accepting for a moment.
  void Rest();
  void EndRest();

  std::string option_;
  std::vector<UniqueFd> sockets_;
  int port_ = 0;
  std::string address_;
  std::string local_address_;
  UniqueFd epoll_;  // watches the sockets and the next two
  UniqueFd wake_;
  UniqueFd timer_;  // ends a rest
  UniqueFd spare_;  // the descriptor in reserve
  uint64_t dropped_ = 0;
  uint64_t reported_ = 0;  // of dropped_, in the log
  SteadyTime next_warning_;
};

}  // namespace millrace
