// SPDX-License-Identifier: Apache-2.0
#include "client/cli/local_fleet.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "common/base/steady_time.h"
#include "tests/support/test_directory.h"

namespace millrace {
namespace {

TEST(LocalFleetTest, ServersMustFitTheHost) {
  LocalFleet fleet("no such program");
  const absl::Status status =
      fleet.Start("store", /*parts=*/1, /*servers=*/1 << 30).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(status.message()),
      ::testing::StartsWith("starting 1073741824 servers needs 10.0 PiB of "
                            "memory, but "));
}

// Servers of local fleets whose program is a shell script.
class ScriptedFleetTest : public testing::DirectoryTest {
 protected:
  // A program whose arguments are those of millrace-server: $4 is the value of
  // --partition, $8 of --port-file and ${10} of --peers.
  std::filesystem::path Program(const std::string& script) {
    const std::filesystem::path program = directory_ / "server";
    std::ofstream(program) << "#!/bin/sh\ncd '" << directory_.string() << "'\n"
                           << script;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return program;
  }
  std::string Contents(const std::filesystem::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
};

constexpr char kServe[] = R"(echo "$@" > "log-$4"
echo "700${4%%,*}" > "$8.new"
mv "$8.new" "$8"
exec sleep 60
)";

bool TerminationIsBlocked() {
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGTERM) == 1;
}

TEST_F(ScriptedFleetTest, ServersShareThePartitionsAndKnowEachOther) {
  std::string peers;
  {
    LocalFleet fleet(Program(kServe));
    EXPECT_TRUE(TerminationIsBlocked());
    const auto list = fleet.Start("the-store", /*parts=*/3, /*servers=*/2);
    ASSERT_TRUE(list.ok()) << list.status();
    EXPECT_EQ(*list, "127.0.0.1:7000,127.0.0.1:7001");
    EXPECT_THAT(Contents(directory_ / "log-0"),
                ::testing::MatchesRegex(
                    "--store the-store --partition 0 --listen 127.0.0.1:0 "
                    "--port-file .*/port-0 --peers @.*/peers\n"));
    const std::string second = Contents(directory_ / "log-1,2");
    EXPECT_THAT(second, ::testing::HasSubstr(" --partition 1,2 "));
    peers = second.substr(second.find('@') + 1);
    peers.pop_back();  // the line break
    EXPECT_EQ(Contents(peers), *list);
    raise(SIGTERM);
    EXPECT_TRUE(fleet.WaitForSignal().ok());
  }
  EXPECT_FALSE(TerminationIsBlocked());
  EXPECT_FALSE(std::filesystem::exists(peers));
}

// 10 MiB each.
TEST_F(ScriptedFleetTest, MoreServersThanMemoryHoldsAreRefused) {
  LocalFleet fleet(Program(kServe));
  const absl::Status status = fleet.Start("store", 1, 2'000'000).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("starting 2000000 servers needs 19.1 TiB of "
                                   "memory"));
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("\nuse fewer --servers"));
}

TEST_F(ScriptedFleetTest, SignalsThatMeanStopEndTheWait) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    LocalFleet fleet(Program(kServe));
    ASSERT_TRUE(fleet.Start("store", 1, 1).ok());
    raise(signal);
    EXPECT_TRUE(fleet.WaitForSignal().ok()) << signal;
  }
}

TEST_F(ScriptedFleetTest, ServersThatDoNotStartAreReported) {
  LocalFleet fleet(Program("exit 3\n"));
  const absl::Status status = fleet.Start("store", 2, 1).status();
  EXPECT_EQ(status,
            absl::UnavailableError(
                "the server of partitions 0,1 ended with status 3; the others "
                "are being stopped\nits log above says why"));
}

TEST_F(ScriptedFleetTest, ServersThatEndLaterAreReported) {
  LocalFleet fleet(Program(R"(echo 7000 > "$8.new"
mv "$8.new" "$8"
[ "$4" = 1 ] || exec sleep 60
while [ ! -e end ]; do sleep 0.01; done
exit 4
)"));
  ASSERT_TRUE(fleet.Start("store", 2, 2).ok());
  std::ofstream(directory_ / "end") << "now";
  const absl::Status status = fleet.WaitForSignal();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("the server of partitions 1 ended"));
}

TEST_F(ScriptedFleetTest, SignalsEndTheStart) {
  LocalFleet fleet(Program("exec sleep 60\n"));
  raise(SIGHUP);
  EXPECT_EQ(fleet.Start("store", 1, 1).status(),
            absl::CancelledError("stopped before all servers were up"));
}

// Otherwise the test would take 30 s.
TEST_F(ScriptedFleetTest, ASecondSignalKillsServersThatDoNotStop) {
  const SteadyTime start = SteadyNow();
  {
    LocalFleet fleet(Program(R"(trap '' TERM
echo 7000 > "$8.new"
mv "$8.new" "$8"
while [ ! -e end ]; do sleep 0.01; done
)"));
    ASSERT_TRUE(fleet.Start("store", 1, 1).ok());
    raise(SIGINT);
  }
  EXPECT_LT(SteadyNow() - start, absl::Seconds(25));
}

}  // namespace
}  // namespace millrace
