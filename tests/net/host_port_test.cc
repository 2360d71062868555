// SPDX-License-Identifier: Apache-2.0
#include "common/net/host_port.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(HostPort, ReadsNamesAndAddresses) {
  const auto name = ParseHostPort("sampler-0.local:7001");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->host, "sampler-0.local");
  EXPECT_EQ(name->port, 7001);
  EXPECT_EQ(name->WithPort(80), "sampler-0.local:80");

  const auto v6 = ParseHostPort("[::1]:65535");
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->WithPort(v6->port), "[::1]:65535");
}

TEST(HostPort, RefusesWhatIsNotAnAddress) {
  for (const char* text : {"",
                           "host",
                           "7001",
                           "host:",
                           ":1",
                           "host:0",
                           "host:65536",
                           "host:-1",
                           "host:1x",
                           "::1:7001",
                           "a/b:1",
                           "a@b:1",
                           "a b:1",
                           "a\tb:1",
                           "host: 1",
                           "[]",
                           "[:1",
                           "]:1",
                           "[::1:1",
                           "[[::1]]:1",
                           "host:+1",
                           "[]:1",
                           "host:99999999999999999999"}) {
    const auto address = ParseHostPort(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_TRUE(absl::IsInvalidArgument(address.status()));
    EXPECT_EQ(address.status().message(),
              std::string("\"") + text +
                  "\" is not HOST:PORT (or [IPV6]:PORT) with a port of 1 to "
                  "65535");
  }
}

TEST(HostPort, OnlyListenersMayUsePortZero) {
  EXPECT_FALSE(ParseHostPort("127.0.0.1:0").ok());
  const auto any = ParseHostPort("127.0.0.1:0", /*min_port=*/0);
  ASSERT_TRUE(any.ok()) << any.status();
  EXPECT_EQ(any->port, 0);
  EXPECT_THAT(std::string(ParseHostPort("127.0.0.1:-1", 0).status().message()),
              HasSubstr("a port of 0 to 65535"));
}

TEST(HostPort, LoopbackIsThisHost) {
  for (const char* host : {"localhost", "::1", "127.0.0.1", "127.255.0.9"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "::", "0.0.0.0", "10.127.0.1", "127.example.com",
                           "127x.0.0.1", "localhost.example.com"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace millrace
