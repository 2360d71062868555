// SPDX-License-Identifier: Apache-2.0
// A client with a plain socket, for tests of listeners.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/file/file.h"

namespace millrace::testing {

// One IPv4 connection to this host.
class SocketClient {
 public:
  // `from`: the client's address, one of 127.0.0.0/8.
  explicit SocketClient(int port, const char* from = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = Address(from, 0);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), sizeof own),
              0);
    sockaddr_in server = Address("127.0.0.1", port);
    connected_ = connect(fd_.get(), reinterpret_cast<sockaddr*>(&server),
                         sizeof server) == 0;
  }

  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }
  // Releases the socket to the caller, who must close it.
  int TakeFd() && { return fd_.release(); }

  void Send(const std::string& text) const {
    EXPECT_EQ(send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  // Whether data or end of file arrives within the timeout.
  bool AwaitReadable(int timeout_ms = 60'000) const {
    pollfd ready = {fd_.get(), POLLIN, 0};
    return poll(&ready, 1, timeout_ms) == 1;
  }

  // Everything received until the server closes the connection; fails if
  // nothing arrives for a minute.
  std::string ReadAll() const {
    std::string all;
    char buffer[65536];
    while (AwaitReadable()) {
      const ssize_t count = recv(fd_.get(), buffer, sizeof buffer, 0);
      if (count <= 0) return all;
      all.append(buffer, static_cast<size_t>(count));
    }
    ADD_FAILURE() << "the connection is still open";
    return all;
  }

  // Whether the server closes the connection within a minute. Discards anything
  // received before.
  bool AwaitEnd() const {
    char buffer[65536];
    while (AwaitReadable()) {
      if (recv(fd_.get(), buffer, sizeof buffer, 0) <= 0) return true;
    }
    return false;
  }

 private:
  static sockaddr_in Address(const char* host, int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET, host, &address.sin_addr), 1);
    return address;
  }

  UniqueFd fd_;
  bool connected_ = false;
};

// `count` connections that send nothing.
inline std::vector<SocketClient> SilentClients(int port, int count,
                                               const char* from = "127.0.0.1") {
  std::vector<SocketClient> clients;
  for (int i = 0; i < count; ++i) {
    clients.emplace_back(port, from);
    EXPECT_TRUE(clients.back().connected());
  }
  return clients;
}

// The response to a GET of `path`, header and body.
inline std::string HttpGet(int port, const std::string& path) {
  const SocketClient client(port);
  client.Send("GET " + path + " HTTP/1.1\r\nHost: test\r\n\r\n");
  return client.ReadAll();
}

}  // namespace millrace::testing
