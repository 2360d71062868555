// SPDX-License-Identifier: Apache-2.0
#include "server/core/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

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

TEST(ServerMetricsTest, ReportsBytesAndScrapedValues) {
  ServerMetrics metrics;
  metrics.AddBytes(30);
  metrics.AddBytes(12);
  ServerMetrics::Scraped scraped;
  scraped.inflight_bytes = 7;
  scraped.scrubbed_bytes = 9;
  scraped.hops = {.device = 3, .host = 4};
  scraped.feature_rows = {.gpu = 5, .gpu_pinned = 6, .cpu = 7};
  scraped.copies = {{"graph", "cuda", 30}};
  scraped.gpus = {{.device = 1, .free_bytes = 10, .total_bytes = 20}};
  const std::string text = metrics.Print(scraped);
  EXPECT_THAT(text, HasSubstr("\nmillrace_sent_bytes_total 42\n"));
  EXPECT_THAT(text, HasSubstr("_inflight_bytes 7\n"));
  EXPECT_THAT(text, HasSubstr("\nmillrace_scrubbed_bytes_total 9\n"));
  for (const char* line :
       {"millrace_hops_total{place=\"gpu\"} 3",
        "millrace_hops_total{place=\"cpu\"} 4",
        "millrace_feature_rows_total{place=\"gpu\"} 5",
        "millrace_feature_rows_total{place=\"gpu_pinned\"} 6",
        "millrace_feature_rows_total{place=\"cpu\"} 7",
        "millrace_store_memory_bytes{content=\"graph\",memory=\"cuda\"} 30",
        "millrace_gpu_memory_bytes{gpu=\"1\"} 20",
        "millrace_gpu_memory_free_bytes{gpu=\"1\"} 10"}) {
    EXPECT_THAT(text, HasSubstr("\n" + std::string(line) + "\n"));
  }
}

TEST(ServerMetricsTest, EachMetricHasItsNameTypeAndValue) {
  ServerMetrics metrics;
  metrics.CountCall("Sample", absl::OkStatus());
  metrics.CountCall("Sample", absl::OkStatus());
  metrics.CountCall("Sample", absl::DataLossError("x"));
  metrics.CountCall("Expand", absl::OkStatus());
  metrics.AddBytes(5);
  const ServerMetrics::Scraped scraped = {.inflight_bytes = 1,
                                          .max_inflight_bytes = 2,
                                          .running_calls = 3,
                                          .calls_ended_for_others = 4,
                                          .peer_calls = 5,
                                          .hedged_peer_calls = 6,
                                          .open_connections = 7,
                                          .refused_connections = 8,
                                          .connections_ended_for_others = 9,
                                          .damaged_partitions = 10,
                                          .scrubbed_bytes = 11,
                                          .certificate_expiry = 12};
  const std::string text = "\n" + metrics.Print(scraped);
  EXPECT_THAT(text, HasSubstr("\n# TYPE millrace_calls_total counter\n"));
  for (const char* line : {"{code=\"OK\",method=\"Sample\"} 2\n",
                           "{code=\"DATA_LOSS\",method=\"Sample\"} 1\n",
                           "{code=\"OK\",method=\"Expand\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\nmillrace_calls_total") + line));
  }
  struct Metric {
    std::string name;
    std::string type;
    std::string value;
  };
  for (const Metric& metric : std::vector<Metric>{
           {"inflight_bytes", "gauge", "1"},
           {"max_inflight_bytes", "gauge", "2"},
           {"running_calls", "gauge", "3"},
           {"calls_ended_for_others_total", "counter", "4"},
           {"peer_calls_total", "counter", "5"},
           {"hedged_peer_calls_total", "counter", "6"},
           {"open_connections", "gauge", "7"},
           {"refused_connections_total", "counter", "8"},
           {"connections_ended_for_others_total", "counter", "9"},
           {"damaged_partitions", "gauge", "10"},
           {"scrubbed_bytes_total", "counter", "11"},
           {"tls_certificate_expiry_timestamp_seconds", "gauge", "12"},
           {"sent_bytes_total", "counter", "5"}}) {
    const std::string name = "millrace_" + metric.name;
    EXPECT_THAT(text, HasSubstr("\n# TYPE " + name + " " + metric.type + "\n" +
                                name + " " + metric.value + "\n"));
    EXPECT_THAT(text, HasSubstr("\n# HELP " + name + " "));
  }
}

TEST(ServerMetricsTest, OmitsWhatTheServerDoesNotDo) {
  const std::string text = ServerMetrics().Print({});
  EXPECT_THAT(text, ::testing::Not(HasSubstr("scrubbed")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("certificate")));
}

TEST(ServerMetricsTest, TimesAreCountedUpToTenSeconds) {
  ServerMetrics metrics;
  metrics.ObserveSample(absl::Milliseconds(1), absl::ZeroDuration());
  metrics.ObserveSample(absl::Milliseconds(30), absl::ZeroDuration());
  metrics.ObserveSample(absl::Seconds(60), absl::ZeroDuration());
  const std::string text = metrics.Print({});
  for (const char* line :
       {"{le=\"0.001\"} 1", "{le=\"0.02\"} 1", "{le=\"0.05\"} 2",
        "{le=\"10\"} 2", "{le=\"+Inf\"} 3"}) {
    EXPECT_THAT(
        text, HasSubstr(std::string("\nmillrace_sample_seconds_bucket") + line +
                        "\n"));
  }
}

}  // namespace
}  // namespace millrace
