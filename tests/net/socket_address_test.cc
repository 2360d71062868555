// SPDX-License-Identifier: Apache-2.0
#include "common/net/socket_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "common/file/file.h"

namespace millrace {
namespace {

// The only address of `host`.
SocketAddress AddressOf(const std::string& host, uint16_t port = 7001) {
  const auto all = Resolve(host, port, AI_NUMERICHOST);
  EXPECT_TRUE(all.ok()) << all.status();
  if (!all.ok()) return SocketAddress();
  EXPECT_EQ(all->size(), 1u);
  return all->front();
}

TEST(SocketAddressTest, IsReadAndPrinted) {
  SocketAddress v4 = AddressOf("127.0.0.1");
  EXPECT_EQ(v4.family(), AF_INET);
  EXPECT_EQ(v4.port(), 7001);
  EXPECT_EQ(v4.Host(), "127.0.0.1");
  SocketAddress v6 = AddressOf("::1");
  EXPECT_TRUE(v6.is_v6());
  EXPECT_EQ(v6.port(), 7001);
  EXPECT_EQ(v6.Host(), "::1");
  for (SocketAddress* address : {&v4, &v6}) {
    const SocketAddress before = *address;
    EXPECT_TRUE(*address == before);
    address->set_port(80);
    EXPECT_EQ(address->port(), 80);
    EXPECT_EQ(address->Host(), before.Host());
    EXPECT_FALSE(*address == before);
  }
}

TEST(SocketAddressTest, KnowsLoopbackAndAllAddresses) {
  for (const char* host : {"127.0.0.1", "127.3.2.1", "::1"}) {
    EXPECT_TRUE(AddressOf(host).IsLoopback()) << host;
    EXPECT_FALSE(AddressOf(host).IsAny()) << host;
  }
  for (const char* host : {"0.0.0.0", "::"}) {
    EXPECT_FALSE(AddressOf(host).IsLoopback()) << host;
    EXPECT_TRUE(AddressOf(host).IsAny()) << host;
  }
  for (const char* host : {"192.0.2.1", "2001:db8::1"}) {
    EXPECT_FALSE(AddressOf(host).IsLoopback()) << host;
    EXPECT_FALSE(AddressOf(host).IsAny()) << host;
  }
}

TEST(ResolveTest, SaysWhyThereIsNoAddress) {
  const auto none = Resolve("host.invalid", 1);
  EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
  EXPECT_NE(none.status().message(), "");
}

TEST(LocalAddressOfTest, IsWhatASocketIsBoundTo) {
  const UniqueFd bound(socket(AF_INET, SOCK_STREAM, 0));
  const SocketAddress address = AddressOf("127.0.0.9", 0);
  ASSERT_EQ(bind(bound.get(), address.get(), address.length), 0);
  EXPECT_EQ(FindLocalAddress(bound.get()).Host(), "127.0.0.9");
  EXPECT_GT(FindLocalAddress(bound.get()).port(), 0);
}

}  // namespace
}  // namespace millrace
