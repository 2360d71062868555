// SPDX-License-Identifier: Apache-2.0
#include "server/life_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <string>

#include "common/base/interrupt.h"
#include "common/base/log.h"
#include "tests/support/captured_log.h"

namespace millrace {
namespace {

using testing::CapturedLog;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogStartingTest, SaysWhatTheUserGave) {
  ServerOptions options;
  options.listen = "0.0.0.0:7000";
  options.advertise = "public.example:7001";
  options.peers = "@servers";
  options.trace_slow = absl::Milliseconds(500);
  options.scrub_bytes_per_second = 20'000'000;
  options.clients.allow = {"a.example", "b"};
  const CapturedLog log;
  LogStarting({.store = "cora",
               .partitions = "0,2",
               .metrics = "127.0.0.1:7080",
               .memory = {},
               .verify = true,
               .drain_timeout = "30s",
               .options = options});
  for (const char* field :
       {"verify=true", "drain_timeout=30s", "scrub_bytes_per_second=20000000",
        "tls_allow=a.example,b", "store=cora", "partitions=0,2",
        "listen=0.0.0.0:7000", "advertise=public.example:7001",
        "metrics=127.0.0.1:7080", "peers=@servers", "trace_slow=500ms",
        "tls=off"}) {
    EXPECT_THAT(log.text(), HasSubstr(" " + std::string(field)));
  }
}

TEST(LogStartingTest, LeavesOutWhatTheUserDidNotGive) {
  const ServerOptions options;
  const CapturedLog log;
  LogStarting({.store = "cora",
               .partitions = "all",
               .metrics = "",
               .memory = {},
               .verify = false,
               .drain_timeout = "30s",
               .options = options});
  for (const char* field :
       {"advertise", "metrics", "peers", "trace_slow", "tls_allow"}) {
    EXPECT_THAT(log.text(), Not(HasSubstr(field)));
  }
}

// Ends the process after a server that ended with `status` has logged that.
// `signal` interrupts it before; 0 means none.
void EndServer(const absl::Status& status, int signal) {
  SetUpLog(LogComponent::kServer);
  InstallInterruptHandler();
  if (signal != 0) raise(signal);
  LogEnded(status, absl::Milliseconds(1500));
  std::exit(0);
}

// These tests run in child processes, because a signal affects the whole
// process.
TEST(LogEndedDeathTest, SignalIsTheReasonEvenWhileTheStoreOpens) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::CancelledError("interrupted")}) {
    EXPECT_EXIT(EndServer(status, SIGTERM), ::testing::ExitedWithCode(0),
                " info server ended why=SIGTERM uptime_seconds=1.5\n");
    EXPECT_EXIT(EndServer(status, SIGINT), ::testing::ExitedWithCode(0),
                " info server ended why=SIGINT uptime_seconds=1.5\n");
  }
}

TEST(LogEndedDeathTest, FailureIsAnError) {
  const absl::Status status = absl::NotFoundError("no store at x\nmake one");
  for (const int signal : {0, SIGINT}) {
    EXPECT_EXIT(EndServer(status, signal), ::testing::ExitedWithCode(0),
                " error server ended why=\"no store at x\" uptime_seconds=1.5");
  }
  EXPECT_EXIT(EndServer(absl::CancelledError("given up"), 0),
              ::testing::ExitedWithCode(0),
              " error server ended why=\"given up\"");
}

}  // namespace
}  // namespace millrace
