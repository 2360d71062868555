// SPDX-License-Identifier: Apache-2.0
#include "tests/support/free_port.h"

#include <gtest/gtest.h>

#include <utility>

namespace millrace::testing {
namespace {

using Ports = std::pair<int, int>;

TEST(FreePortTest, LeavesOutPortsOfClientsWhereItCan) {
  EXPECT_EQ(PortsOfServers({32768, 60999}), Ports(10000, 32767));
  EXPECT_EQ(PortsOfServers({11000, 65535}), Ports(10000, 10999));
  EXPECT_EQ(PortsOfServers({10999, 60999}), Ports(61000, 65535));
  EXPECT_EQ(PortsOfServers({1024, 64535}), Ports(64536, 65535));
  EXPECT_EQ(PortsOfServers({1024, 64536}), Ports(0, 0));
  EXPECT_EQ(PortsOfServers({1024, 65535}), Ports(0, 0));
}

TEST(FreePortTest, GivesAPort) { EXPECT_GE(FreePort(), 1024); }

}  // namespace
}  // namespace millrace::testing
