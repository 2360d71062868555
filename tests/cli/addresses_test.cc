// SPDX-License-Identifier: Apache-2.0
#include "common/cli/addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/base/field_error.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the error that `--listen TEXT` causes; empty if it is accepted.
std::string Refusal(const std::string& text, int min_port) {
  CLI::App app;
  std::string listen;
  app.add_option("--listen", listen)->check(HostPortText(min_port));
  try {
    app.parse("--listen " + text);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  EXPECT_EQ(listen, text);
  return "";
}

TEST(HostPortTextTest, TakesAddresses) {
  for (const char* text : {"a:1", "127.0.0.1:65535", "[::1]:7000"}) {
    EXPECT_EQ(Refusal(text, 1), "");
    EXPECT_EQ(Refusal(text, 0), "");
  }
  EXPECT_EQ(Refusal("a:0", 0), "");
}

TEST(HostPortTextTest, SaysWhatIsWrong) {
  EXPECT_THAT(Refusal("a:0", 1), HasSubstr("a port of 1 to 65535"));
  EXPECT_THAT(Refusal("a:65536", 0), HasSubstr("a port of 0 to 65535"));
  for (const char* text : {"a", "7000", "a:1,b:2", "@file", "::1:7000"}) {
    EXPECT_THAT(Refusal(text, 1), HasSubstr(text));
  }
}

Exposure ExposureOf(const std::string& address) {
  return {.option = "--serve", .address = address};
}

TEST(CheckExposureTest, OtherHostsNeedTlsOrConsent) {
  for (const char* address : {"127.0.0.1:0", "127.1.2.3:7000", "[::1]:7000"}) {
    EXPECT_EQ(CheckExposure(ExposureOf(address)), absl::OkStatus()) << address;
  }
  for (const char* address : {"0.0.0.0:0", "[::]:7000", "10.0.0.1:7000"}) {
    Exposure exposure = ExposureOf(address);
    const absl::Status status = CheckExposure(exposure);
    EXPECT_TRUE(IsUsageError(status));
    EXPECT_THAT(std::string(status.message()),
                StartsWith("--serve " + std::string(address) +
                           " can be reached from other hosts, but there is no "
                           "--tls-cert\n"));
    exposure.tls = true;
    EXPECT_EQ(CheckExposure(exposure), absl::OkStatus());
    exposure.tls = false;
    exposure.plaintext = true;
    EXPECT_EQ(CheckExposure(exposure), absl::OkStatus());
  }
}

TEST(CheckExposureTest, TlsAndPlaintextExcludeEachOther) {
  Exposure exposure = ExposureOf("127.0.0.1:0");
  exposure.tls = exposure.plaintext = true;
  EXPECT_TRUE(IsUsageError(CheckExposure(exposure)));
}

}  // namespace
}  // namespace millrace
