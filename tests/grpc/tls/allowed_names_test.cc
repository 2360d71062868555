// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/tls/allowed_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::HasSubstr;
using Kind = CertificateName::Kind;

const std::vector<std::string>& Allow() {
  static const auto* const allow = new std::vector<std::string>{
      "trainer", "*.Fleet.example", "spiffe://x/y", "Host.example"};
  return *allow;
}

bool IsDnsAllowed(const std::string& name) {
  return IsAllowed(Allow(), {{Kind::kDns, "other"}, {Kind::kDns, name}});
}
bool IsUriAllowed(const std::string& name) {
  return IsAllowed(Allow(), {{Kind::kUri, "other://"}, {Kind::kUri, name}});
}
bool IsCommonAllowed(const std::string& name) {
  return IsAllowed(Allow(), {{Kind::kCommon, name}});
}

TEST(AllowedNamesTest, DnsNamesIgnoreCase) {
  for (const char* name : {"host.example", "HOST.EXAMPLE", "trainer",
                           "s1.fleet.example", "S1.FLEET.Example"}) {
    EXPECT_TRUE(IsDnsAllowed(name)) << name;
  }
  for (const char* name : {"", "host", "trainer2", "host.example.org",
                           "s1.host.example", "fleet.example", ".fleet.example",
                           "a.b.fleet.example", "s1fleet.example"}) {
    EXPECT_FALSE(IsDnsAllowed(name)) << name;
  }
}

TEST(AllowedNamesTest, UrisAndCommonNamesMustMatchExactly) {
  EXPECT_TRUE(IsUriAllowed("spiffe://x/y"));
  EXPECT_FALSE(IsUriAllowed("spiffe://x/Y"));
  EXPECT_FALSE(IsUriAllowed("spiffe://x/y/z"));
  EXPECT_TRUE(IsCommonAllowed("trainer"));
  EXPECT_TRUE(IsCommonAllowed("Host.example"));
  EXPECT_FALSE(IsCommonAllowed("Trainer"));
  EXPECT_FALSE(IsCommonAllowed("host.example"));
  EXPECT_FALSE(IsCommonAllowed(""));
}

// *.NAME applies to DNS names, which a CA checks. A certificate with a wildcard
// is valid for every host, so it must not pass as the one intended.
TEST(AllowedNamesTest, WildcardsOfCertificatesMatchNothing) {
  for (const char* name : {"*.fleet.example", "*.Fleet.example", "*"}) {
    EXPECT_FALSE(IsDnsAllowed(name)) << name;
    EXPECT_FALSE(IsUriAllowed(name)) << name;
    EXPECT_FALSE(IsCommonAllowed(name)) << name;
  }
  EXPECT_FALSE(IsCommonAllowed("s1.Fleet.example"));
}

TEST(AllowedNamesTest, ACertificateWithoutNamesIsNotAllowed) {
  EXPECT_FALSE(IsAllowed(Allow(), {}));
  EXPECT_FALSE(IsAllowed(Allow(), {{Kind::kAddress, "trainer"}}));
}

TEST(AllowedNamesTest, RefusesEntriesThatAreNotNames) {
  EXPECT_TRUE(CheckAllow(Allow()).ok());
  for (const char* entry :
       {"", "*", "*.", "s*.fleet.example", "*.*.example", "s1.*.example"}) {
    const absl::Status status = CheckAllow({"trainer", entry});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << entry;
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("tls_allow \"" + std::string(entry) + "\": not a name\n"));
  }
}

}  // namespace
}  // namespace millrace
