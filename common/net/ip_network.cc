// SPDX-License-Identifier: Apache-2.0
#include "common/net/ip_network.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace millrace {

std::string NetworkOf(const in_addr& address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

std::string NetworkOf(const in6_addr& address) {
  constexpr size_t kMappedPrefix = 12, kNetwork = 8;
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr mapped{};
    std::memcpy(&mapped, address.s6_addr + kMappedPrefix, sizeof mapped);
    return NetworkOf(mapped);
  }
  in6_addr network{};
  std::copy_n(address.s6_addr, kNetwork, network.s6_addr);
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, &network, text, sizeof text);
  return std::string(text) + "/64";
}

}  // namespace millrace
