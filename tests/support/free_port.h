// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <fstream>
#include <random>

#include "common/file/file.h"

namespace millrace::testing {

// A port of 127.0.0.1 that nothing listens on and that the kernel does not
// assign to clients, so that it is still free when a test listens on it.
inline uint16_t FreePort() {
  int first_of_clients = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first_of_clients;
  std::random_device random;
  std::uniform_int_distribution<int> ports(10000, first_of_clients - 1);
  while (true) {
    const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto port = static_cast<uint16_t>(ports(random));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(probe.get(), reinterpret_cast<sockaddr*>(&address),
             sizeof address) == 0) {
      return port;
    }
  }
}

}  // namespace millrace::testing
