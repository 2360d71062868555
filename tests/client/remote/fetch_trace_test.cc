// SPDX-License-Identifier: Apache-2.0
#include "client/remote/fetch_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/captured_log.h"

namespace millrace {
namespace {

using testing::CapturedLog;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SteadyTime TimeOf(int milliseconds) {
  return SteadyTime() + absl::Hours(1) + absl::Milliseconds(milliseconds);
}

TEST(FetchTraceTest, NamesTheSlowestCallOfASlowBatch) {
  const CapturedLog log;
  FetchTrace trace(TimeOf(0));
  trace.NoteCall({.method = "/millrace.v1.Sampler/Gather",
                  .server = "10.0.0.2:7000",
                  .partition = 1,
                  .replicas_asked = 2,
                  .time = absl::Milliseconds(300)});
  trace.NoteCall({.method = "/millrace.v1.Sampler/Sample",
                  .server = "10.0.0.1:7000",
                  .partition = 0,
                  .time = absl::Milliseconds(200)});
  const std::string id = "1f0c9a2b-3-1234-57.2";
  trace.LogIfSlow({.request_id = id,
                   .epoch = 3,
                   .batch = 1234,
                   .home = 0,
                   .attempts = 2,
                   .bytes = 77},
                  TimeOf(510), absl::Milliseconds(500));
  EXPECT_THAT(
      log.text(),
      HasSubstr("slow batch request_id=1f0c9a2b-3-1234-57.2 epoch=3 batch=1234 "
                "home=0 code=OK total_ms=510 attempts=2 bytes=77 calls=2 "
                "resent_calls=1 slowest_call=Gather slowest_partition=1 "
                "slowest_server=10.0.0.2:7000 slowest_ms=300\n"));
}

TEST(FetchTraceTest, NamesNoCallIfNoneWasMade) {
  const CapturedLog log;
  FetchTrace trace(TimeOf(0));
  const std::string id = "a";
  trace.LogIfSlow(
      {.request_id = id, .code = absl::StatusCode::kUnavailable, .attempts = 3},
      TimeOf(510), absl::Milliseconds(500));
  EXPECT_THAT(log.text(),
              HasSubstr("slow batch request_id=a epoch=0 batch=0 home=0 "
                        "code=UNAVAILABLE total_ms=510 attempts=3 bytes=0 "
                        "calls=0 resent_calls=0\n"));
}

TEST(FetchTraceTest, FastBatchesAreNotLogged) {
  const CapturedLog log;
  FetchTrace trace(TimeOf(0));
  const std::string id = "a";
  trace.LogIfSlow({.request_id = id}, TimeOf(500), absl::Milliseconds(500));
  EXPECT_THAT(log.text(), IsEmpty());
}

}  // namespace
}  // namespace millrace
