// SPDX-License-Identifier: Apache-2.0
#include "common/net/ip_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>

namespace millrace {
namespace {

std::string NetworkOfV6(const char* text) {
  in6_addr address{};
  EXPECT_EQ(inet_pton(AF_INET6, text, &address), 1) << text;
  return NetworkOf(address);
}

TEST(NetworkOfTest, AnIpv4AddressIsANetworkOfItsOwn) {
  in_addr address{};
  ASSERT_EQ(inet_pton(AF_INET, "10.0.0.7", &address), 1);
  EXPECT_EQ(NetworkOf(address), "10.0.0.7");
  EXPECT_EQ(NetworkOfV6("::ffff:10.0.0.7"), "10.0.0.7");
}

TEST(NetworkOfTest, Ipv6NetworksEndAfterTheFirstHalf) {
  EXPECT_EQ(NetworkOfV6("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(NetworkOfV6("2001:db8:1:3:3:4:5:6"), "2001:db8:1:3::/64");
  EXPECT_EQ(NetworkOfV6("::1"), "::/64");
}

}  // namespace
}  // namespace millrace
