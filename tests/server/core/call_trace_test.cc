// SPDX-License-Identifier: Apache-2.0
#include "server/core/call_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/captured_log.h"

namespace millrace {
namespace {

using testing::CapturedLog;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SteadyTime At(int milliseconds) {
  return SteadyTime() + absl::Hours(1) + absl::Milliseconds(milliseconds);
}

// A call that arrives at 0, is read at 1, and worked on from 3 to 13 and from
// 20 to 24, after waiting for a thread since 17, while its client takes from 14
// to 17 for the first message and from 25 to 27 for the second. The status is
// sent from 27 on.
void RunCall(CallTrace& trace) {
  trace.NoteRequest(At(1));
  trace.NoteWork(At(3), At(13), 100);
  trace.AwaitClient(At(14));
  trace.ClientMadeProgress(At(17));
  trace.NoteLeafTask(At(17));
  trace.NoteWork(At(20), At(24), 50);
  trace.AwaitClient(At(25));
  trace.ClientMadeProgress(At(27));
  trace.NoteFinish(At(27));
  trace.NoteStatus("Gather", absl::OkStatus());
}

TEST(CallTraceTest, SaysWhereTheTimeWent) {
  const CapturedLog log;
  CallTrace trace(At(0));
  RunCall(trace);
  trace.LogIfSlow("10.0.0.1", At(30), absl::Milliseconds(29));
  EXPECT_THAT(log.text(),
              HasSubstr("slow call method=Gather client=10.0.0.1 code=OK "
                        "total_ms=30 read_ms=1 queue_ms=2 work_ms=14 "
                        "leaf_queue_ms=3 send_ms=5 finish_ms=3 bytes=150\n"));
}

TEST(CallTraceTest, BatchHasItsNameAndHops) {
  const CapturedLog log;
  CallTrace trace(At(10'000));
  trace.NoteRequest(At(10'001));
  trace.NoteBatch({.epoch = 3, .batch = 1234, .partition = 2});
  trace.NoteHop({.number = 0,
                 .total = absl::Milliseconds(2),
                 .waiting = absl::ZeroDuration()});
  trace.NoteHop({.number = 1,
                 .total = absl::Milliseconds(7),
                 .waiting = absl::Milliseconds(6),
                 .slowest_partition = 1,
                 .slowest_server = "10.0.0.2:7000"});
  trace.NoteHop({.number = 2,
                 .total = absl::Milliseconds(3),
                 .waiting = absl::Milliseconds(2),
                 .slowest_partition = 3});
  trace.NoteSampling(absl::Milliseconds(9));
  trace.NoteWork(At(10'001), At(10'012), 7);
  trace.NoteStatus("Sample", absl::UnavailableError("x"));
  trace.LogIfSlow("c", At(10'020), absl::ZeroDuration());
  EXPECT_THAT(
      log.text(),
      HasSubstr("slow batch method=Sample client=c code=UNAVAILABLE "
                "total_ms=20 read_ms=1 queue_ms=0 epoch=3 batch=1234 "
                "partition=2 sample_ms=9 hop0_ms=2 hop1_ms=7 hop1_wait_ms=6 "
                "hop1_slowest_partition=1 hop1_slowest_server=10.0.0.2:7000 "
                "hop2_ms=3 hop2_wait_ms=2 hop2_slowest_partition=3 "
                "gather_ms=2 leaf_queue_ms=0 send_ms=0 finish_ms=0 "
                "bytes=7\n"));
}

// Such as one that is cancelled while it waits.
TEST(CallTraceTest, CallMayEndWithoutTheThreadAndTheClientThatItWaitsFor) {
  const CapturedLog log;
  CallTrace trace(At(15'000));
  trace.NoteRequest(At(15'000));
  trace.NoteWork(At(15'000), At(15'001), 7);
  trace.AwaitClient(At(15'001));
  trace.NoteLeafTask(At(15'003));
  trace.NoteStatus("Gather", absl::CancelledError("x"));
  trace.LogIfSlow("c", At(15'008), absl::ZeroDuration());
  EXPECT_THAT(log.text(),
              HasSubstr("work_ms=1 leaf_queue_ms=5 send_ms=7 finish_ms=0 "));
}

TEST(CallTraceTest, FastCallsAreNotLogged) {
  const CapturedLog log;
  CallTrace trace(At(20'000));
  trace.LogIfSlow("c", At(20'030), absl::Milliseconds(30));
  EXPECT_THAT(log.text(), IsEmpty());
}

TEST(CallTraceTest, TenAreLoggedASecondAndTheOthersCounted) {
  const CapturedLog log;
  for (int i = 0; i < 25; ++i) {
    CallTrace trace(At(30'000));
    trace.LogIfSlow("c", At(30'500), absl::ZeroDuration());
  }
  CallTrace trace(At(31'000));
  trace.LogIfSlow("c", At(31'600), absl::ZeroDuration());
  size_t lines = 0;
  for (const char c : log.text()) lines += c == '\n';
  EXPECT_EQ(lines, 11);
  EXPECT_THAT(log.text(), HasSubstr("left_out=15\n"));
}

TEST(CallTraceTest, CallsTakeNoPlacesOfBatches) {
  const CapturedLog log;
  for (int i = 0; i < 25; ++i) {
    CallTrace trace(At(40'000));
    trace.LogIfSlow("c", At(40'500), absl::ZeroDuration());
  }
  CallTrace trace(At(40'000));
  trace.NoteBatch({.epoch = 0, .batch = 1, .partition = 0});
  trace.LogIfSlow("c", At(40'500), absl::ZeroDuration());
  EXPECT_THAT(log.text(), HasSubstr("slow batch "));
}

}  // namespace
}  // namespace millrace
