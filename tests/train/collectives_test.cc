// SPDX-License-Identifier: Apache-2.0
#include "client/train/collectives.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "common/base/interrupt.h"
#include "common/base/strings.h"

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

void ConnectAndInterrupt() {
  InstallInterruptHandler();
  std::thread interrupt([] { raise(SIGINT); });
  CollectiveOptions options;
  options.store_timeout = absl::Hours(1);
  const absl::Status status = Collectives::Connect(kNowhere, options).status();
  interrupt.join();
  std::_Exit(absl::IsCancelled(status) ? 0 : 1);
}

TEST(CollectivesDeathTest, InterruptEndsTheWaitForTheStore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ConnectAndInterrupt(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace millrace::testing
