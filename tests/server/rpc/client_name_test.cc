// SPDX-License-Identifier: Apache-2.0
#include "server/rpc/client_name.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(NetworkOfPeerTest, LeavesOutFamilyAndPort) {
  EXPECT_EQ(NetworkOfPeer("ipv4:127.0.0.2:4711"), "127.0.0.2");
  EXPECT_EQ(NetworkOfPeer("unix:/tmp/socket"), "unix:/tmp/socket");
  EXPECT_EQ(NetworkOfPeer(""), "");
}

TEST(NetworkOfPeerTest, TreatsAnIpv6NetworkAsOneAddress) {
  EXPECT_EQ(NetworkOfPeer("ipv6:%5B::1%5D:4711"), "::/64");
  EXPECT_EQ(NetworkOfPeer("ipv6:[2001:db8::7]:1"), "2001:db8::/64");
  EXPECT_EQ(NetworkOfPeer("ipv6:%5B2001:db8::ffff:1:2:3%5D:2"),
            "2001:db8::/64");
  EXPECT_EQ(NetworkOfPeer("ipv6:[2001:db8:0:1::7]:1"), "2001:db8:0:1::/64");
  EXPECT_EQ(NetworkOfPeer("ipv6:%5Bfe80::1%252%5D:1"), "fe80::/64");
}

TEST(NetworkOfPeerTest, TellsIpv4AddressesApart) {
  EXPECT_EQ(NetworkOfPeer("ipv6:[::ffff:10.0.0.7]:1"), "10.0.0.7");
}

}  // namespace
}  // namespace millrace
