// SPDX-License-Identifier: Apache-2.0
#include "client/train/collectives.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "absl/strings/str_format.h"
#include "common/base/interrupt.h"
#include "common/base/strings.h"
#include "tests/support/silent_listener.h"

namespace millrace::testing {
namespace {

// Nobody listens there.
const GroupAddress kNowhere = {1, 2, "127.0.0.1", 1};

TEST(CollectivesTest, SaysWhichStoreItWaitedFor) {
  CollectiveOptions options;
  options.store_timeout = absl::Milliseconds(300);
  const absl::Status status = Collectives::Connect(kNowhere, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("store of rank 0 at 127.0.0.1:1\n"),
            absl::string_view::npos)
      << status;
}

TEST(CollectivesTest, RankZeroNamesAPortThatIsTaken) {
  c10d::TCPStoreOptions taken;
  taken.port = 0;
  taken.isServer = true;
  taken.waitWorkers = false;
  const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", taken);
  const absl::Status status =
      Collectives::Connect({0, 2, "127.0.0.1", store->getPort()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find(StrCat("127.0.0.1:", store->getPort())),
            absl::string_view::npos)
      << status;
}

// Heartbeats that lose patience soon.
CollectiveOptions Impatient() {
  CollectiveOptions options;
  options.heartbeat.interval = absl::Milliseconds(50);
  options.heartbeat.silence = absl::Seconds(2);
  return options;
}

// One that was free a moment ago.
uint16_t FreePort() { return SilentListener().port(); }

TEST(CollectivesTest, NamesTheRanksThatDidNotCome) {
  CollectiveOptions options = Impatient();
  options.start_timeout = absl::Milliseconds(200);
  const absl::Status status =
      Collectives::Connect({0, 3, "127.0.0.1", FreePort()}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
  EXPECT_NE(status.message().find("ranks 1, 2 of 3 did not come within 200ms"),
            absl::string_view::npos)
      << status;
}

// Rank 1 comes and dies; rank 2 does not come for as long as anyone waits.
TEST(CollectivesTest, NamesTheRankThatDiedBeforeAllCame) {
  const uint16_t port = FreePort();
  absl::Status status;
  std::thread zero([&status, port] {
    status =
        Collectives::Connect({0, 3, "127.0.0.1", port}, Impatient()).status();
  });
  c10d::TCPStoreOptions up;
  up.port = port;
  {
    const auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", up);
    Heartbeat::Start({1, 3, "127.0.0.1", port}).reset();
  }
  zero.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("rank 1 is lost"), absl::string_view::npos)
      << status;
}

// Waits until somebody tries to connect to a port of this host that answers
// to nobody.
void AwaitAttempt(uint16_t port) {
  const std::string remote = absl::StrFormat("0100007F:%04X", port);
  while (true) {
    std::ifstream sockets("/proc/self/net/tcp");
    std::string line;
    while (std::getline(sockets, line)) {
      std::istringstream words(line);
      std::string number, local, peer, state;
      words >> number >> local >> peer >> state;
      if (peer == remote && state == "02") return;  // SYN_SENT
    }
  }
}

// A SIGINT while the store is tried for: its queue of connections is full.
void ConnectAndInterrupt() {
  InstallInterruptHandler();
  const SilentListener store(/*backlog=*/0);
  const UniqueFd first = store.Connect();
  std::thread interrupt([&store] {
    AwaitAttempt(store.port());
    raise(SIGINT);
  });
  CollectiveOptions options;
  options.store_timeout = absl::Hours(1);
  const absl::Status status =
      Collectives::Connect({1, 2, "127.0.0.1", store.port()}, options).status();
  interrupt.join();
  std::_Exit(absl::IsCancelled(status) ? 0 : 1);
}

TEST(CollectivesDeathTest, InterruptEndsTheWaitForTheStore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ConnectAndInterrupt(), ::testing::ExitedWithCode(0), "");
}

// Rank 0 was stopped: its kernel takes the connection, nobody answers.
void ConnectToAStoppedRankZero() {
  const SilentListener store;
  CollectiveOptions options = Impatient();
  options.heartbeat.grace = absl::Milliseconds(200);
  (void)Collectives::Connect({1, 2, "127.0.0.1", store.port()}, options);
  std::_Exit(2);
}

TEST(CollectivesDeathTest, AStoreThatNeverAnswersEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ConnectToAStoppedRankZero(), ::testing::ExitedWithCode(1),
              "rank 0 is (lost|gone): its store at 127.0.0.1");
}

}  // namespace
}  // namespace millrace::testing
