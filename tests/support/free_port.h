// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <utility>

#include "common/base/unique_fd.h"

namespace millrace::testing {

// The first and the last of many ports that the kernel does not assign to
// clients; 0 and 0 if it assigns nearly all. `clients`: the first and the last
// that it does assign.
inline std::pair<int, int> PortsOfServers(std::pair<int, int> clients) {
  constexpr int kEnough = 1000;  // so that one of them is free
  if (clients.first - 10000 >= kEnough) return {10000, clients.first - 1};
  if (65535 - clients.second >= kEnough) return {clients.second + 1, 65535};
  return {0, 0};
}

// A port of 127.0.0.1 that nothing listens on and that the kernel does not
// assign to clients, if there are such ports, so that it is still free when a
// test listens on it.
inline uint16_t FreePort() {
  std::pair<int, int> clients = {32768, 60999};
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> clients.first >>
      clients.second;
  const auto [first, last] = PortsOfServers(clients);
  std::random_device random;
  std::uniform_int_distribution<int> ports(first, last);
  while (true) {
    const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    // The kernel chooses instead of 0.
    address.sin_port = htons(static_cast<uint16_t>(ports(random)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    if (bind(probe.get(), generic, size) == 0 &&
        getsockname(probe.get(), generic, &size) == 0) {
      return ntohs(address.sin_port);
    }
  }
}

}  // namespace millrace::testing
