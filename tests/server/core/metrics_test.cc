// SPDX-License-Identifier: Apache-2.0
#include "server/core/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(ServerMetricsTest, HopAndPeerTimesAreSeparate) {
  ServerMetrics metrics;
  metrics.ObserveSample(absl::Seconds(2), absl::Seconds(0.5));
  metrics.ObserveSample(absl::Seconds(4), absl::Seconds(0.25));
  const std::string text = metrics.Print({});
  EXPECT_THAT(text, HasSubstr("\nmillrace_sample_seconds_sum 6\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_peer_wait_seconds_sum 0.75\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_peer_wait_seconds_count 2\n"));
}

TEST(ServerMetricsTest, ReportsTheGivenBytesAndGauges) {
  ServerMetrics metrics;
  metrics.AddBytes(30);
  metrics.AddBytes(12);
  ServerMetrics::Gauges gauges;
  gauges.inflight_bytes = 7;
  gauges.scrubbed_bytes = 9;
  const std::string text = metrics.Print(gauges);
  EXPECT_THAT(text, HasSubstr("\nmillrace_sent_bytes_total 42\n"));
  EXPECT_THAT(text, HasSubstr("_inflight_bytes 7\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_scrubbed_bytes_total 9\n"));
}

}  // namespace
}  // namespace millrace
