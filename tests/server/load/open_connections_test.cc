// SPDX-License-Identifier: Apache-2.0
#include "server/load/open_connections.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "common/base/steady_time.h"
#include "common/file/file.h"
#include "common/net/listening_socket.h"
#include "tests/support/socket_client.h"

namespace millrace {
namespace {

using testing::SocketClient;
using Verdict = OpenConnections::Verdict;

UniqueFd NewSocket() { return UniqueFd(socket(AF_INET, SOCK_STREAM, 0)); }

// Retries, because scans are at least a few microseconds apart.
template <typename Condition>
bool Soon(const Condition& condition) {
  const SteadyTime end = SteadyNow() + absl::Minutes(1);
  while (!condition()) {
    if (SteadyNow() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

bool SoonCounts(OpenConnections& connections, int count) {
  return Soon([&] { return connections.Count() == count; });
}

TEST(OpenConnectionsTest, CountsOpenConnections) {
  OpenConnections connections({.all = 10, .per_address = 10});
  EXPECT_EQ(connections.Count(), 0);
  UniqueFd first = NewSocket();
  const UniqueFd second = NewSocket();
  EXPECT_EQ(connections.Add(first.get(), "a"), Verdict::kAdded);
  EXPECT_EQ(connections.Add(second.get(), "b"), Verdict::kAdded);
  EXPECT_TRUE(SoonCounts(connections, 2));
  first = UniqueFd();
  EXPECT_TRUE(SoonCounts(connections, 1));
}

TEST(OpenConnectionsTest, KeepsItsLimits) {
  OpenConnections connections({.all = 3, .per_address = 2});
  UniqueFd sockets[] = {NewSocket(), NewSocket(), NewSocket(), NewSocket()};
  EXPECT_EQ(connections.Add(sockets[0].get(), "a"), Verdict::kAdded);
  EXPECT_EQ(connections.Add(sockets[1].get(), "a"), Verdict::kAdded);
  EXPECT_EQ(connections.Add(sockets[2].get(), "a"),
            Verdict::kTooManyFromAddress);
  EXPECT_EQ(connections.Add(sockets[2].get(), "b"), Verdict::kAdded);
  EXPECT_EQ(connections.Add(sockets[3].get(), "b"), Verdict::kTooMany);
  sockets[0] = UniqueFd();
  EXPECT_TRUE(Soon([&] {
    return connections.Add(sockets[3].get(), "a") == Verdict::kAdded;
  }));
}

// Both ends of a connection.
struct Connection {
  Connection() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    server = UniqueFd(ends[0]);
    client = UniqueFd(ends[1]);
  }
  bool ended() const {
    char byte = 0;
    return recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }

  UniqueFd server;
  UniqueFd client;
};

TEST(OpenConnectionsTest, AddressesBelowTheirShareGetPlaces) {
  OpenConnections connections({.all = 4, .per_address = 4});
  Connection a[3];
  const Connection b, c, d;
  const Connection refused;
  const auto add = [&](const Connection& connection, const char* address) {
    return connections.Add(connection.server.get(), address);
  };
  for (const Connection& one : a) EXPECT_EQ(add(one, "a"), Verdict::kAdded);
  EXPECT_EQ(add(b, "b"), Verdict::kAdded);

  EXPECT_EQ(add(c, "c"), Verdict::kTookPlace);
  EXPECT_EQ(connections.last_ended_address(), "a");
  EXPECT_TRUE(a[2].ended());
  for (const char* address : {"a", "b", "c"}) {
    EXPECT_EQ(add(refused, address), Verdict::kTooMany) << address;
  }

  // a[2] keeps its descriptor until it is closed.
  EXPECT_EQ(add(d, "d"), Verdict::kTooMany);
  a[2].server = UniqueFd();
  EXPECT_TRUE(Soon([&] { return add(d, "d") == Verdict::kTookPlace; }));
  EXPECT_TRUE(a[1].ended());
  // There are fewer places than addresses.
  EXPECT_EQ(add(refused, "e"), Verdict::kTooMany);
  EXPECT_FALSE(a[0].ended());
  for (const Connection* one : {&b, &c, &d}) EXPECT_FALSE(one->ended());
  // a[1] is still open, but has no place.
  EXPECT_TRUE(SoonCounts(connections, 5));
}

TEST(OpenConnectionsTest, EndsNoSocketThatReusesADescriptor) {
  // Right after a scan, the class does not know yet that a socket was closed.
  // If the next scan came too early, the test is repeated.
  EXPECT_TRUE(Soon([] {
    OpenConnections connections({.all = 2, .per_address = 2});
    const Connection first, second, other, next;
    EXPECT_EQ(connections.Add(first.server.get(), "a"), Verdict::kAdded);
    EXPECT_EQ(connections.Add(second.server.get(), "a"), Verdict::kAdded);
    connections.Count();
    const int number = second.server.get();
    EXPECT_EQ(dup2(other.server.get(), number), number);
    const Verdict verdict = connections.Add(next.server.get(), "b");
    EXPECT_FALSE(first.ended());
    EXPECT_FALSE(other.ended());
    return verdict == Verdict::kTookPlace;
  }));
}

// The kernel assigns the lowest free number.
TEST(OpenConnectionsTest, DistinguishesSocketsThatReuseADescriptor) {
  OpenConnections connections({.all = 10, .per_address = 1});
  UniqueFd socket = NewSocket();
  const int number = socket.get();
  EXPECT_EQ(connections.Add(number, "a"), Verdict::kAdded);
  UniqueFd other = NewSocket();
  ASSERT_EQ(dup2(other.get(), number), number);
  EXPECT_TRUE(SoonCounts(connections, 0));
  EXPECT_EQ(connections.Add(number, "a"), Verdict::kAdded);
  EXPECT_TRUE(SoonCounts(connections, 1));
  // The connection would not be accepted with that number if it were still
  // open.
  EXPECT_EQ(connections.Add(number, "b"), Verdict::kAdded);
  EXPECT_EQ(connections.Add(other.get(), "a"), Verdict::kAdded);
  EXPECT_TRUE(SoonCounts(connections, 2));
  const UniqueFd file(open("/dev/null", O_RDONLY));
  ASSERT_EQ(dup2(file.get(), number), number);
  EXPECT_TRUE(SoonCounts(connections, 1));
}

TEST(DecideLimitsTest, DependOnTheFilesThatMayBeOpen) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit small = {1024, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  const ConnectionLimits limits = DecideLimits({});
  EXPECT_EQ(limits.all, 768);
  EXPECT_EQ(limits.per_address, 192);
  EXPECT_EQ(DecideLimits({.all = 100, .per_address = 0}).per_address, 25);
  for (const int all : {1, 2, 3, 4}) {
    EXPECT_EQ(DecideLimits({.all = all, .per_address = 0}).per_address, 1);
  }
  EXPECT_EQ(DecideLimits({.all = 5, .per_address = 0}).per_address, 2);
  const ConnectionLimits given = DecideLimits({.all = 5000, .per_address = 7});
  EXPECT_EQ(given.all, 5000);
  EXPECT_EQ(given.per_address, 7);
  setrlimit(RLIMIT_NOFILE, &before);
}

// Accepts the server's end of a connection to `socket`.
UniqueFd Accept(ListeningSocket& socket) {
  UniqueFd connection;
  Soon([&] {
    connection = socket.Accept();
    return connection.get() >= 0;
  });
  return connection;
}

TEST(AddressOfTest, IsThatOfTheClient) {
  const auto socket = ListeningSocket::Open({"0.0.0.0", 0}, "listen");
  ASSERT_TRUE(socket.ok()) << socket.status();
  const SocketClient client((*socket)->port(), "127.0.0.5");
  EXPECT_EQ(FindAddress(Accept(**socket).get()), "127.0.0.5");
  EXPECT_EQ(FindAddress(NewSocket().get()), "");
}

TEST(AddressOfTest, IsANetworkOfIpv6) {
  const auto socket = ListeningSocket::Open({"::", 0}, "listen");
  if (!socket.ok()) GTEST_SKIP() << socket.status();
  const SocketClient v4_client((*socket)->port(), "127.0.0.5");
  EXPECT_EQ(FindAddress(Accept(**socket).get()), "127.0.0.5");
  const UniqueFd client(::socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 server{};
  server.sin6_family = AF_INET6;
  server.sin6_port = htons(static_cast<uint16_t>((*socket)->port()));
  server.sin6_addr = in6addr_loopback;
  if (connect(client.get(), reinterpret_cast<sockaddr*>(&server),
              sizeof server) != 0) {
    GTEST_SKIP() << "there is no IPv6";
  }
  EXPECT_EQ(FindAddress(Accept(**socket).get()), "::/64");
}

}  // namespace
}  // namespace millrace
