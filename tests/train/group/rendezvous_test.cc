// SPDX-License-Identifier: Apache-2.0
#include "client/train/group/rendezvous.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/support/free_port.h"
#include "tests/support/silent_listener.h"

namespace millrace::testing {
namespace {

GroupAddress At(const std::string& host, uint16_t port) {
  GroupAddress group;
  group.world = 2;
  group.host = host;
  group.port = port;
  return group;
}

// The address that a socket is bound to.
sockaddr_storage NameOf(const UniqueFd& fd) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length),
            0);
  return name;
}

TEST(RendezvousTest, BindsOnlyToTheGroupsAddress) {
  for (const char* host : {"127.0.0.1", "localhost", "127.3.2.1"}) {
    const auto bound = BindAtMeetingPoint(At(host, 0), absl::Seconds(30));
    ASSERT_TRUE(bound.ok()) << bound.status();
    const sockaddr_storage name = NameOf(bound->fd);
    ASSERT_EQ(name.ss_family, AF_INET);
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(name).sin_addr,
              text, sizeof(text));
    EXPECT_EQ(bound->address, text);
    EXPECT_EQ(text,
              std::string(host)[0] == 'l' ? "127.0.0.1" : std::string(host));
    EXPECT_TRUE(bound->loopback);
  }
}

TEST(RendezvousTest, BindsToAnIpv6Address) {
  const UniqueFd probe(socket(AF_INET6, SOCK_STREAM, 0));
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  if (bind(probe.get(), reinterpret_cast<sockaddr*>(&loopback),
           sizeof(loopback)) != 0) {
    GTEST_SKIP() << "this host has no IPv6";
  }
  const auto bound = BindAtMeetingPoint(At("::1", 0), absl::Seconds(30));
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(NameOf(bound->fd).ss_family, AF_INET6);
  EXPECT_EQ(bound->address, "::1");
  EXPECT_TRUE(bound->loopback);
}

// The address is reserved for documentation, so no host has it.
TEST(RendezvousTest, NamesAnAddressOfAnotherHost) {
  const absl::Status status =
      BindAtMeetingPoint(At("192.0.2.77", 1234), absl::Hours(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(status.message().find("192.0.2.77 is not an address of this host, "
                                  "where rank 0 runs\n"),
            0u)
      << status;
}

// After rank 0 has moved to another host, name servers know its old address for
// a while.
TEST(RendezvousTest, WaitsUntilTheNameIsOfThisHost) {
  std::atomic<int> lookups = 0;
  const auto lookup = [&lookups](const std::string& host, uint16_t port) {
    EXPECT_EQ(host, "trainer-0");
    return Resolve(++lookups < 3 ? "192.0.2.77" : "127.0.0.1", port);
  };
  const auto bound =
      BindAtMeetingPoint(At("trainer-0", 0), absl::Seconds(30), lookup);
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->address, "127.0.0.1");
  EXPECT_EQ(lookups, 3);
}

TEST(RendezvousTest, NamesTheAddressesOfAnotherHost) {
  const auto lookup = [](const std::string&, uint16_t port) {
    return Resolve("192.0.2.77", port);
  };
  const absl::Status status =
      BindAtMeetingPoint(At("trainer-0", 1234), absl::Milliseconds(1), lookup)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_EQ(status.message().find("trainer-0 (192.0.2.77) is not an address of "
                                  "this host, where rank 0 runs\n"),
            0u)
      << status;
}

TEST(RendezvousTest, RefusesToListenEverywhere) {
  for (const char* host : {"0.0.0.0", "::"}) {
    const absl::Status status =
        BindAtMeetingPoint(At(host, FreePort()), absl::Seconds(30)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(
        status.message().find(absl::StrCat(
            host,
            " stands for all addresses of a host, but ranks meet at one\n")),
        0u)
        << status;
  }
}

TEST(RendezvousTest, NamesAPortThatIsTaken) {
  const SilentListener taken;
  const absl::Status status =
      BindAtMeetingPoint(At("127.0.0.1", taken.port()), absl::Seconds(30))
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message().find(
                absl::StrCat("rank 0 cannot listen at 127.0.0.1:", taken.port(),
                             " (127.0.0.1): Address already in use\n")),
            0u)
      << status;
}

TEST(RendezvousTest, NamesAHostWithoutAddress) {
  const GroupAddress group = At("host.invalid", 1234);
  const absl::Status zero =
      BindAtMeetingPoint(group, absl::Milliseconds(1)).status();
  EXPECT_EQ(zero.code(), absl::StatusCode::kUnavailable) << zero;
  EXPECT_EQ(zero.message().find("rank 0's host host.invalid has no address: "),
            0u)
      << zero;
  const absl::Status one =
      FindMeetingPoint(group, absl::Milliseconds(1)).status();
  EXPECT_EQ(one.code(), absl::StatusCode::kUnavailable) << one;
  EXPECT_NE(one.message().find(" for rank 0 at host.invalid:1234: "),
            absl::string_view::npos)
      << one;
}

TEST(RendezvousTest, FindsTheListeningProcess) {
  const SilentListener listener;
  const auto point =
      FindMeetingPoint(At("localhost", listener.port()), absl::Seconds(30));
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(point->address, "127.0.0.1");
  EXPECT_EQ(point->own_address, "127.0.0.1");
  EXPECT_TRUE(point->loopback);
}

TEST(RendezvousTest, SaysWhyRankZeroWasNotFound) {
  const uint16_t port = FreePort();
  const absl::Status status =
      FindMeetingPoint(At("127.0.0.1", port), absl::Milliseconds(300)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(absl::StrCat(
                " for rank 0 at 127.0.0.1:", port, ": Connection refused\n")),
            absl::string_view::npos)
      << status;
}

TEST(RendezvousTest, NamesTheInterfacesThatGlooMayUse) {
  unsetenv("GLOO_SOCKET_IFNAME");
  EXPECT_EQ(*GlooInterfaces(), std::vector<std::string>());
  setenv("GLOO_SOCKET_IFNAME", "lo, lo", 1);
  EXPECT_EQ(*GlooInterfaces(), (std::vector<std::string>{"lo", "lo"}));
  setenv("GLOO_SOCKET_IFNAME", "lo,nosuch0", 1);
  const absl::Status status = GlooInterfaces().status();
  unsetenv("GLOO_SOCKET_IFNAME");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(status.message().find(
                "GLOO_SOCKET_IFNAME is \"lo,nosuch0\", but this host has no "
                "interface nosuch0 with an address\nset it to one or more of "),
            0u)
      << status;
  EXPECT_NE(status.message().find("lo, "), absl::string_view::npos) << status;
}

TEST(RendezvousTest, SaysThatTorchrunsAgentWasNotFound) {
  GroupAddress group = At("127.0.0.1", FreePort());
  group.rank = 3;
  group.agent_listens = true;
  const absl::Status status =
      FindMeetingPoint(group, absl::Milliseconds(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message().find("rank 3 waited "), 0u) << status;
  EXPECT_NE(status.message().find(absl::StrCat(
                " for torchrun's agent at 127.0.0.1:", group.port, ": ")),
            absl::string_view::npos)
      << status;
}

TEST(RendezvousTest, NoticesComeOnlyAfterASecond) {
  ::testing::internal::CaptureStdout();  // where spdlog writes in tests
  WaitNotice notice(SteadyNow() + absl::Seconds(30));
  notice.Say("rank 0");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

// The side that closes a connection first keeps the port for a while.
TEST(RendezvousTest, ThePortOfAGroupThatHasJustEndedIsFree) {
  uint16_t port = 0;
  {
    const auto bound =
        BindAtMeetingPoint(At("127.0.0.1", 0), absl::Seconds(30));
    ASSERT_TRUE(bound.ok()) << bound.status();
    ASSERT_EQ(listen(bound->fd.get(), 1), 0);
    sockaddr_storage name = NameOf(bound->fd);
    port = ntohs(reinterpret_cast<const sockaddr_in&>(name).sin_port);
    const UniqueFd other(socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(connect(other.get(), reinterpret_cast<sockaddr*>(&name),
                      sizeof(sockaddr_in)),
              0);
    UniqueFd accepted(accept(bound->fd.get(), nullptr, nullptr));
    ASSERT_GE(accepted.get(), 0);
    accepted = UniqueFd();
    char end;
    EXPECT_EQ(read(other.get(), &end, 1), 0);  // has seen the close
  }
  const auto again =
      BindAtMeetingPoint(At("127.0.0.1", port), absl::Seconds(30));
  EXPECT_TRUE(again.ok()) << again.status();
}

}  // namespace
}  // namespace millrace::testing
