// SPDX-License-Identifier: Apache-2.0
#include "server/core/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "server/load/refusal.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Print(const ServerMetrics& metrics) {
  return "\n" + PrintMetrics(metrics.Collect());
}

TEST(ServerMetricsTest, HopAndPeerTimesAreSeparate) {
  ServerMetrics metrics;
  metrics.ObserveSample(absl::Seconds(2), absl::Seconds(0.5));
  metrics.ObserveSample(absl::Seconds(4), absl::Seconds(0.25));
  const std::string text = Print(metrics);
  EXPECT_THAT(text, HasSubstr("\nmillrace_sample_seconds_sum 6\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_peer_wait_seconds_sum 0.75\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_peer_wait_seconds_count 2\n"));
}

TEST(ServerMetricsTest, CountsCallsByMethodAndCode) {
  ServerMetrics metrics;
  metrics.CountCall("Sample", absl::OkStatus(), absl::Seconds(1));
  metrics.CountCall("Sample", absl::OkStatus(), absl::Seconds(2));
  metrics.CountCall("Sample", absl::DataLossError("x"), absl::Seconds(4));
  metrics.CountCall("Expand", absl::OkStatus(), absl::Seconds(8));
  const std::string text = Print(metrics);
  EXPECT_THAT(text, HasSubstr("\n# TYPE millrace_calls_total counter\n"));
  for (const char* line :
       {"millrace_calls_total{code=\"OK\",method=\"Sample\"} 2",
        "millrace_calls_total{code=\"DATA_LOSS\",method=\"Sample\"} 1",
        "millrace_calls_total{code=\"OK\",method=\"Expand\"} 1",
        "millrace_call_seconds_count{method=\"Sample\"} 3",
        "millrace_call_seconds_sum{method=\"Sample\"} 7",
        "millrace_call_seconds_count{method=\"Expand\"} 1",
        "millrace_call_seconds_sum{method=\"Expand\"} 8",
        // Other methods are there, too.
        "millrace_call_seconds_count{method=\"Resolve\"} 0",
        "millrace_peer_call_seconds_count{method=\"Resolve\"} 0",
        "millrace_received_bytes_total{method=\"Describe\"} 0"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(line) + "\n"));
  }
}

TEST(ServerMetricsTest, CountsCallsOfAllThreads) {
  ServerMetrics metrics;
  constexpr int kThreads = 4, kCalls = 1000;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&metrics] {
      for (int call = 0; call < kCalls; ++call) {
        metrics.CountCall("Gather", absl::OkStatus(), absl::Seconds(1));
        metrics.CountCall("Describe", absl::UnauthenticatedError("x"),
                          absl::Seconds(1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = Print(metrics);
  const std::string count = std::to_string(kThreads * kCalls);
  for (const char* labels : {"code=\"OK\",method=\"Gather\"",
                             "code=\"UNAUTHENTICATED\",method=\"Describe\""}) {
    EXPECT_THAT(text, HasSubstr("\nmillrace_calls_total{" +
                                std::string(labels) + "} " + count + "\n"));
  }
}

TEST(ServerMetricsTest, CountsRefusalsByReason) {
  ServerMetrics metrics;
  // All are there from the start, so that rate() sees the first refusal.
  const std::string before = Print(metrics);
  for (const char* method :
       {"Sample", "Gather", "Expand", "HasEdges", "Resolve", "Describe"}) {
    for (const char* reason :
         {"connection", "places", "memory", "share", "too_large", "draining",
          "store", "partition", "damaged"}) {
      EXPECT_THAT(before, HasSubstr("\nmillrace_refused_calls_total{method=\"" +
                                    std::string(method) + "\",reason=\"" +
                                    reason + "\"} 0\n"));
    }
  }
  const absl::Status full = absl::ResourceExhaustedError("x");
  for (const auto& [method, reason] :
       std::vector<std::pair<const char*, RefusalReason>>{
           {"Sample", RefusalReason::kMemory},
           {"Sample", RefusalReason::kPlaces},
           {"Sample", RefusalReason::kPlaces},
           {"Gather", RefusalReason::kPlaces}}) {
    metrics.CountCall(method, WithRefusal(full, reason), absl::Seconds(1));
  }
  metrics.CountCall("Sample", full, absl::Seconds(1));
  const std::string text = Print(metrics);
  const std::string name = "\nmillrace_refused_calls_total";
  EXPECT_THAT(text,
              HasSubstr(name + "{method=\"Sample\",reason=\"memory\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr(name + "{method=\"Sample\",reason=\"places\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr(name + "{method=\"Gather\",reason=\"places\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("{code=\"RESOURCE_EXHAUSTED\",method=\"Sample\"} 4\n"));
}

TEST(ServerMetricsTest, CallsAreInFlightUntilTheyStop) {
  ServerMetrics metrics;
  metrics.StartCall("Expand");
  metrics.StartCall("Expand");
  metrics.StartCall("Gather");
  metrics.StopCall("Expand");
  const std::string text = Print(metrics);
  for (const char* line : {"# TYPE millrace_inflight_calls gauge",
                           "millrace_inflight_calls{method=\"Expand\"} 1",
                           "millrace_inflight_calls{method=\"Gather\"} 1",
                           "millrace_inflight_calls{method=\"Sample\"} 0"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(line) + "\n"));
  }
}

TEST(ServerMetricsTest, CountsBytesOfRequestsAndAnswers) {
  ServerMetrics metrics;
  metrics.AddRequest("Expand", 30);
  metrics.AddRequest("Expand", 12);
  metrics.AddRequest("Gather", 5);
  metrics.AddSent("Sample", 30);
  metrics.AddSent("Sample", 13);
  metrics.AddSent("Expand", 6);
  const std::string text = Print(metrics);
  for (const char* line :
       {"# TYPE millrace_received_bytes_total counter",
        "millrace_received_bytes_total{method=\"Expand\"} 42",
        "millrace_received_bytes_total{method=\"Gather\"} 5",
        "# TYPE millrace_sent_bytes_total counter",
        "millrace_sent_bytes_total{method=\"Sample\"} 43",
        "millrace_sent_bytes_total{method=\"Expand\"} 6",
        "millrace_sent_bytes_total{method=\"Describe\"} 0"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(line) + "\n"));
  }
}

TEST(ServerMetricsTest, TimesAreCountedUpToTenSeconds) {
  ServerMetrics metrics;
  for (const absl::Duration time :
       {absl::Milliseconds(1), absl::Milliseconds(30), absl::Seconds(60)}) {
    metrics.ObserveSample(time, absl::ZeroDuration());
    metrics.ObservePeerCall("Expand", time);
  }
  const std::string text = Print(metrics);
  for (const char* line :
       {"le=\"0.001\"} 1", "le=\"0.02\"} 1", "le=\"0.05\"} 2", "le=\"10\"} 2",
        "le=\"+Inf\"} 3"}) {
    EXPECT_THAT(text, HasSubstr("\nmillrace_sample_seconds_bucket{" +
                                std::string(line) + "\n"));
    EXPECT_THAT(text, HasSubstr("\nmillrace_peer_call_seconds_bucket{method="
                                "\"Expand\"," +
                                std::string(line) + "\n"));
  }
}

TEST(ServerMetricsTest, ShortCallsAreToldApart) {
  ServerMetrics metrics;
  for (const absl::Duration time :
       {absl::Microseconds(100), absl::Microseconds(150),
        absl::Microseconds(400), absl::Microseconds(900)}) {
    metrics.CountCall("Expand", absl::OkStatus(), time);
    metrics.ObservePeerCall("Expand", time);
  }
  const std::string text = Print(metrics);
  for (const char* line : {"le=\"0.0001\"} 1", "le=\"0.0002\"} 2",
                           "le=\"0.0005\"} 3", "le=\"0.001\"} 4"}) {
    for (const char* name : {"call", "peer_call"}) {
      EXPECT_THAT(
          text, HasSubstr("\nmillrace_" + std::string(name) +
                          "_seconds_bucket{method=\"Expand\"," + line + "\n"));
    }
  }
}

TEST(ServerMetricsTest, RecentSamplesAreThoseThatEndedWell) {
  ServerMetrics metrics;
  metrics.CountCall("Sample", absl::OkStatus(), absl::Seconds(3));
  metrics.CountCall("Sample", absl::DataLossError("x"), absl::Seconds(9));
  metrics.CountCall("Gather", absl::OkStatus(), absl::Seconds(9));
  EXPECT_EQ(metrics.recent_samples().p50, absl::Seconds(3));
  EXPECT_EQ(metrics.recent_samples().p99, absl::Seconds(3));
}

}  // namespace
}  // namespace millrace
