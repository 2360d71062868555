// SPDX-License-Identifier: Apache-2.0
#include "common/net/socket_address.h"

#include <netdb.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "common/base/check.h"
#include "common/base/strings.h"

namespace millrace {

uint16_t SocketAddress::port() const {
  return ntohs(is_v6() ? v6().sin6_port : v4().sin_port);
}

void SocketAddress::set_port(uint16_t port) {
  if (is_v6()) {
    reinterpret_cast<sockaddr_in6&>(bytes).sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in&>(bytes).sin_port = htons(port);
  }
}

std::string SocketAddress::Host() const {
  char text[NI_MAXHOST] = "?";
  getnameinfo(get(), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

bool SocketAddress::IsAny() const {
  return is_v6() ? IN6_IS_ADDR_UNSPECIFIED(&v6().sin6_addr)
                 : v4().sin_addr.s_addr == htonl(INADDR_ANY);
}

bool SocketAddress::IsLoopback() const {
  return is_v6() ? IN6_IS_ADDR_LOOPBACK(&v6().sin6_addr)
                 : ntohl(v4().sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool SocketAddress::operator==(const SocketAddress& other) const {
  return length == other.length &&
         std::memcmp(&bytes, &other.bytes, length) == 0;
}

absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host,
                                                   uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const int error =
      getaddrinfo(host.c_str(), StrCat(port).c_str(), &hints, &first);
  if (error != 0) return absl::UnavailableError(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(first,
                                                             freeaddrinfo);
  std::vector<SocketAddress> all;
  for (const addrinfo* info = first; info != nullptr; info = info->ai_next) {
    SocketAddress next;
    next.length = info->ai_addrlen;
    std::memcpy(&next.bytes, info->ai_addr, info->ai_addrlen);
    // /etc/hosts may list an address twice.
    if (std::find(all.begin(), all.end(), next) == all.end()) {
      all.push_back(next);
    }
  }
  return all;
}

SocketAddress FindLocalAddress(int socket) {
  SocketAddress name;
  MILLRACE_CHECK(getsockname(socket, name.get(), &name.length) == 0);
  return name;
}

}  // namespace millrace
