// SPDX-License-Identifier: Apache-2.0
#include "server/port_check.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <string_view>
#include <thread>

#include "common/net/listening_socket.h"

namespace millrace {
namespace {

// HTTP/2 frames: the settings, and the response to the first call.
constexpr std::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
constexpr std::string_view kAnswer(
    "\0\0\20\1\5\0\0\0\1\210\0\13grpc-status\0010", 25);

UniqueFd Accept(ListeningSocket& socket) {
  UniqueFd connection;
  while (connection.get() < 0) {
    pollfd wait = {socket.fd(), POLLIN, 0};
    if (poll(&wait, 1, /*timeout=*/60'000) != 1) return connection;
    connection = socket.Accept();
  }
  return connection;
}

void Send(const UniqueFd& connection, std::string_view bytes) {
  EXPECT_EQ(send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// Reads until a call has arrived on the connection.
void AwaitCall(const UniqueFd& connection) {
  std::string all;
  while (all.find("/grpc.health.v1.Health/Check") == std::string::npos) {
    pollfd wait = {connection.get(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, /*timeout=*/60'000), 1);
    char buffer[4096];
    const ssize_t count = recv(connection.get(), buffer, sizeof buffer, 0);
    ASSERT_GT(count, 0);
    all.append(buffer, static_cast<size_t>(count));
  }
}

TEST(PortCheckTest, RetriesAfterAConnectionEnds) {
  const auto socket = ListeningSocket::Open({"127.0.0.1", 0}, "listen");
  ASSERT_TRUE(socket.ok()) << socket.status();
  std::thread server([&socket] {
    {
      const UniqueFd idle = Accept(**socket);
      Send(idle, kSettings);
      AwaitCall(idle);
    }
    const UniqueFd next = Accept(**socket);
    Send(next, kSettings);
    AwaitCall(next);
    Send(next, kAnswer);
    // Waits until the client is gone.
    pollfd wait = {next.get(), POLLRDHUP, 0};
    poll(&wait, 1, /*timeout=*/60'000);
  });
  const absl::Status status =
      PortCheck((*socket)->address(), /*tls=*/nullptr).Ask(absl::Minutes(1));
  EXPECT_TRUE(status.ok()) << status;
  server.join();
}

}  // namespace
}  // namespace millrace
