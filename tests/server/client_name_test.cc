// SPDX-License-Identifier: Apache-2.0
#include "server/client_name.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(HostOfPeerTest, LeavesOutFamilyAndPort) {
  EXPECT_EQ(HostOfPeer("ipv4:127.0.0.2:4711"), "127.0.0.2");
  EXPECT_EQ(HostOfPeer("ipv6:%5B::1%5D:4711"), "::1");
  EXPECT_EQ(HostOfPeer("ipv6:[2001:db8::7]:1"), "2001:db8::7");
  EXPECT_EQ(HostOfPeer("unix:/tmp/socket"), "unix:/tmp/socket");
  EXPECT_EQ(HostOfPeer(""), "");
}

}  // namespace
}  // namespace millrace
