// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace millrace {

// An IPv4 or IPv6 address and port, as socket functions use them.
struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t length = sizeof bytes;  // capacity of `bytes`, then the length used

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&bytes); }
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }
  const sockaddr_in& v4() const {
    return reinterpret_cast<const sockaddr_in&>(bytes);
  }
  const sockaddr_in6& v6() const {
    return reinterpret_cast<const sockaddr_in6&>(bytes);
  }

  int family() const { return bytes.ss_family; }
  bool is_v6() const { return family() == AF_INET6; }
  uint16_t port() const;
  void set_port(uint16_t port);
  // The numeric address without the port, such as "127.0.0.1" or "::1".
  std::string Host() const;

  // Whether it is 0.0.0.0 or ::, which stand for all addresses of a host.
  bool IsAny() const;
  // Whether only programs on this host can reach it.
  bool IsLoopback() const;

  bool operator==(const SocketAddress& other) const;
};

// The TCP addresses of `host`, a name or an address, without duplicates, in the
// resolver's order. `flags` are those of getaddrinfo(), such as AI_PASSIVE. May
// block for a long time if a name server does not answer.
// UNAVAILABLE: there are none; the message is the resolver's.
absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host,
                                                   uint16_t port,
                                                   int flags = 0);

// The local address of a socket or connection.
SocketAddress FindLocalAddress(int socket);

}  // namespace millrace
