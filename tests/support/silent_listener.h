// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "common/base/check.h"
#include "common/file/file.h"

namespace millrace::testing {

// A port of 127.0.0.1 that accepts connections and never sends anything, like a
// stopped process.
class SilentListener {
 public:
  // The kernel accepts `backlog` + 1 connections that are not awaited here;
  // further ones get no answer.
  explicit SilentListener(int backlog = 16)
      : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    MILLRACE_CHECK(bind(socket_.get(), address, length) == 0);
    MILLRACE_CHECK(getsockname(socket_.get(), address, &length) == 0);
    MILLRACE_CHECK(listen(socket_.get(), backlog) == 0);
  }

  uint16_t port() const { return ntohs(address_.sin_port); }

  UniqueFd Connect() const {
    UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
    MILLRACE_CHECK(connect(client.get(),
                           reinterpret_cast<const sockaddr*>(&address_),
                           sizeof(address_)) == 0);
    return client;
  }

  // Blocks until a client connects; the connection stays open.
  void AwaitConnection() const {
    MILLRACE_CHECK(accept(socket_.get(), nullptr, nullptr) >= 0);
  }
  // Blocks until a client connects, and closes the connection.
  void AcceptAndClose() const {
    const UniqueFd client(accept(socket_.get(), nullptr, nullptr));
    MILLRACE_CHECK(client.get() >= 0);
  }

 private:
  const UniqueFd socket_;
  sockaddr_in address_{};
};

}  // namespace millrace::testing
