// SPDX-License-Identifier: Apache-2.0
#include "common/net/listening_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/log.h"
#include "tests/support/captured_log.h"
#include "tests/support/socket_client.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::SocketClient;
using ::testing::StartsWith;

std::unique_ptr<ListeningSocket> Listen(const std::string& address) {
  auto socket = ListeningSocket::Open(*ParseHostPort(address, 0), "listen");
  EXPECT_TRUE(socket.ok()) << socket.status();
  return socket.ok() ? *std::move(socket) : nullptr;
}

std::string WhyNot(const std::string& address) {
  const auto socket =
      ListeningSocket::Open(*ParseHostPort(address, 0), "listen");
  EXPECT_TRUE(absl::IsUnavailable(socket.status())) << socket.status();
  return std::string(socket.status().message());
}

bool IsReadable(int fd, int timeout_ms) {
  pollfd ready = {fd, POLLIN, 0};
  return poll(&ready, 1, timeout_ms) == 1;
}

// Waits up to a minute for the next connection.
UniqueFd AwaitConnection(ListeningSocket& socket) {
  UniqueFd connection;
  while (connection.get() < 0 && IsReadable(socket.fd(), 60'000)) {
    connection = socket.Accept();
  }
  return connection;
}

int TcpOption(int fd, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  getsockopt(fd, IPPROTO_TCP, option, &value, &length);
  return value;
}

// Whether this machine has IPv6.
bool HasIpv6() { return ListeningSocket::Open({"::1", 0}, "listen").ok(); }

// Saves the limit on open files and restores it at the end.
class FileLimit {
 public:
  FileLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~FileLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  void Set(rlim_t files) const {
    const rlimit limit = {files, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }

 private:
  rlimit before_{};
};

TEST(ListeningSocketTest, AcceptsConnectionsForAnEventLoop) {
  const auto socket = Listen("127.0.0.1:0");
  EXPECT_EQ(socket->Accept().get(), -1);
  EXPECT_FALSE(IsReadable(socket->fd(), 0));
  const SocketClient client(socket->port());
  const UniqueFd connection = AwaitConnection(*socket);
  ASSERT_GE(connection.get(), 0);
  EXPECT_TRUE(fcntl(connection.get(), F_GETFL) & O_NONBLOCK);
  EXPECT_TRUE(fcntl(connection.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(TcpOption(connection.get(), TCP_NODELAY), 1);
  EXPECT_EQ(TcpOption(connection.get(), TCP_USER_TIMEOUT), 10'000);
  EXPECT_EQ(socket->Accept().get(), -1);
  EXPECT_EQ(socket->dropped(), 0u);
}

TEST(ListeningSocketTest, StaysReadableUntilTheNextAccept) {
  const auto socket = Listen("127.0.0.1:0");
  socket->Wake();
  socket->Wake();
  EXPECT_TRUE(IsReadable(socket->fd(), 0));
  EXPECT_EQ(socket->Accept().get(), -1);
  EXPECT_FALSE(IsReadable(socket->fd(), 0));
}

TEST(ListeningSocketTest, KnowsItsAddresses) {
  const auto local = Listen("127.0.0.1:0");
  EXPECT_GT(local->port(), 0);
  EXPECT_EQ(local->address(), "127.0.0.1:" + std::to_string(local->port()));
  EXPECT_EQ(local->local_address(), local->address());
  const auto any = Listen("0.0.0.0:0");
  const std::string port = std::to_string(any->port());
  EXPECT_EQ(any->address(), "0.0.0.0:" + port);
  EXPECT_EQ(any->local_address(), "127.0.0.1:" + port);
}

TEST(ListeningSocketTest, ListensAtIpv6) {
  if (!HasIpv6()) GTEST_SKIP() << "there is no IPv6";
  const auto local = Listen("[::1]:0");
  const std::string port = std::to_string(local->port());
  EXPECT_EQ(local->address(), "[::1]:" + port);
  EXPECT_EQ(local->local_address(), "[::1]:" + port);
  EXPECT_FALSE(SocketClient(local->port()).connected());
  const auto any = Listen("[::]:0");
  EXPECT_TRUE(SocketClient(any->port()).connected()) << "by IPv4";
}

TEST(ListeningSocketTest, ListensAtEveryAddressOfAName) {
  const auto socket = Listen("localhost:0");
  ASSERT_NE(socket, nullptr);
  EXPECT_TRUE(SocketClient(socket->port()).connected());
  EXPECT_GE(AwaitConnection(*socket).get(), 0);
}

TEST(ListeningSocketTest, SaysWhyItCannotListen) {
  const auto socket = Listen("127.0.0.1:0");
  EXPECT_THAT(WhyNot(socket->address()),
              StartsWith("listen " + socket->address() +
                         ": cannot listen there: Address already in use\nstop "
                         "the program that uses the port"));
  // This address is reserved for documentation, so no host has it.
  EXPECT_THAT(WhyNot("192.0.2.1:0"),
              HasSubstr("Cannot assign requested address\ngive an address"));
  EXPECT_THAT(WhyNot("host.invalid:0"),
              StartsWith("listen host.invalid:0: cannot listen there: "));
}

TEST(ListeningSocketTest, TakesAPortThatWasInUseAMomentAgo) {
  auto socket = Listen("127.0.0.1:0");
  const std::string address = socket->address();
  const SocketClient client(socket->port());
  // The end that closes first keeps the port for a minute.
  AwaitConnection(*socket);
  EXPECT_TRUE(client.AwaitEnd());
  socket.reset();
  EXPECT_NE(Listen(address), nullptr);
}

TEST(ListeningSocketTest, ClosesWaitingConnectionsWithoutDescriptors) {
  const testing::CapturedLog log;
  // UBSan needs descriptors when it first sees a type.
  LogInfo("there are descriptors still");
  const auto socket = Listen("127.0.0.1:0");
  const FileLimit limit;
  limit.Set(256);
  const auto clients = testing::SilentClients(socket->port(), 3);
  std::vector<UniqueFd> all;
  do {
    all.emplace_back(dup(STDIN_FILENO));
  } while (all.back().get() >= 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(IsReadable(socket->fd(), 60'000));
    EXPECT_EQ(socket->Accept().get(), -1);
    EXPECT_TRUE(clients[static_cast<size_t>(i)].AwaitEnd());
  }
  EXPECT_EQ(socket->dropped(), 2u);
  // The second one is reported later, together with any that arrive by then.
  EXPECT_THAT(log.text(),
              HasSubstr("connections refused; raise the limit of open files "
                        "(ulimit -n) count=1 reason=\"out of file "
                        "descriptors\" "));
  EXPECT_EQ(log.text().find("refused"), log.text().rfind("refused"));
  all.clear();
  const UniqueFd connection = AwaitConnection(*socket);
  EXPECT_GE(connection.get(), 0);
  EXPECT_FALSE(clients[2].AwaitReadable(/*timeout_ms=*/0));
  EXPECT_EQ(socket->dropped(), 2u);
}

TEST(ListeningSocketTest, PausesWhenEvenTheReserveDescriptorIsGone) {
  const auto socket = Listen("127.0.0.1:0");
  const SocketClient client(socket->port());
  ASSERT_TRUE(IsReadable(socket->fd(), 60'000));
  {
    const FileLimit limit;
    limit.Set(1);
    EXPECT_EQ(socket->Accept().get(), -1);
    // The client still waits, but poll() does not report it again and again.
    EXPECT_FALSE(IsReadable(socket->fd(), 0));
  }
  EXPECT_GE(AwaitConnection(*socket).get(), 0);
  EXPECT_EQ(socket->dropped(), 0u);
}

}  // namespace
}  // namespace millrace
