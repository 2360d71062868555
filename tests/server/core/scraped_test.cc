// SPDX-License-Identifier: Apache-2.0
#include "server/core/scraped.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string PrintScraped(const Scraped& scraped) {
  return "\n" + PrintMetrics(FamiliesOf(scraped));
}

// All values differ, so that none can be taken for another one.
TEST(ScrapedTest, EachMetricHasItsNameTypeAndValue) {
  const Scraped scraped = {
      .ready = true,
      .draining = false,
      .sampling = {.threads = 21,
                   .load = {.waiting = 22,
                            .running = 20,
                            .busy_seconds = 23,
                            .busy_ratio = 0.24}},
      .leaf = {.threads = 25,
               .load = {.waiting = 26,
                        .running = 20,
                        .busy_seconds = 27,
                        .busy_ratio = 0.28}},
      .inflight_bytes = 30,
      .max_inflight_bytes = 2,
      .calls_ended_for_others = 4,
      .peer_calls = 5,
      .hedged_peer_calls = 6,
      .open_connections = 7,
      .refused_connections = 8,
      .connections_ended_for_others = 9,
      .damaged_partitions = 10,
      .scrub = Scraped::Scrub{.bytes = 11, .damaged_files = 12, .passes = 13},
      .certificate_expiry = 14};
  const std::string text = PrintScraped(scraped);
  struct Metric {
    std::string name;
    std::string type;
    std::string value;
  };
  for (const Metric& metric : std::vector<Metric>{
           {"ready", "gauge", "1"},
           {"draining", "gauge", "0"},
           {"sampling_threads", "gauge", "21"},
           {"sampling_queue_length", "gauge", "22"},
           {"sampling_busy_seconds_total", "counter", "23"},
           {"sampling_busy_ratio", "gauge", "0.24"},
           {"leaf_threads", "gauge", "25"},
           {"leaf_queue_length", "gauge", "26"},
           {"leaf_busy_seconds_total", "counter", "27"},
           {"leaf_busy_ratio", "gauge", "0.28"},
           {"inflight_bytes", "gauge", "30"},
           {"max_inflight_bytes", "gauge", "2"},
           {"calls_ended_for_others_total", "counter", "4"},
           {"peer_calls_total", "counter", "5"},
           {"hedged_peer_calls_total", "counter", "6"},
           {"open_connections", "gauge", "7"},
           {"refused_connections_total", "counter", "8"},
           {"connections_ended_for_others_total", "counter", "9"},
           {"damaged_partitions", "gauge", "10"},
           {"scrubbed_bytes_total", "counter", "11"},
           {"scrub_damaged_files_total", "counter", "12"},
           {"scrub_passes_total", "counter", "13"},
           {"tls_certificate_expiry_timestamp_seconds", "gauge", "14"}}) {
    const std::string name = "millrace_" + metric.name;
    EXPECT_THAT(text, HasSubstr("\n# TYPE " + name + " " + metric.type + "\n" +
                                name + " " + metric.value + "\n"));
    EXPECT_THAT(text, HasSubstr("\n# HELP " + name + " "));
  }
}

TEST(ScrapedTest, LabelsTellValuesApart) {
  Scraped scraped;
  scraped.store = {
      .uuid = "u", .fingerprint = "f", .dataset_fingerprint = "d", .parts = 4};
  scraped.partitions = {{0, true}, {2, false}};
  scraped.limits = {{.method = "Sample", .max_calls = 1, .clients = 2},
                    {.method = "Gather", .max_calls = 3, .clients = 4}};
  scraped.peers = {{"ready", 5}, {"refused", 6}};
  scraped.hops = {.device = 3, .host = 4};
  scraped.feature_rows = {.gpu = 5, .gpu_pinned = 6, .cpu = 7};
  scraped.copies = {{"graph", "cuda", 30}, {"features", "mmap", 31}};
  scraped.gpus = {{.device = 1, .free_bytes = 10, .total_bytes = 20}};
  const std::string text = PrintScraped(scraped);
  for (const char* line :
       {"store_info{store_uuid=\"u\",fingerprint=\"f\",dataset_fingerprint="
        "\"d\",partitions=\"0,2\",parts=\"4\"} 1",
        "partition_served{partition=\"0\"} 1",
        "partition_served{partition=\"2\"} 0", "max_calls{method=\"Sample\"} 1",
        "clients{method=\"Sample\"} 2", "max_calls{method=\"Gather\"} 3",
        "clients{method=\"Gather\"} 4", "peers{state=\"ready\"} 5",
        "peers{state=\"refused\"} 6", "hops_total{place=\"gpu\"} 3",
        "hops_total{place=\"cpu\"} 4", "feature_rows_total{place=\"gpu\"} 5",
        "feature_rows_total{place=\"gpu_pinned\"} 6",
        "feature_rows_total{place=\"cpu\"} 7",
        "store_memory_bytes{content=\"graph\",memory=\"cuda\"} 30",
        "store_memory_bytes{content=\"features\",memory=\"mmap\"} 31",
        "gpu_memory_bytes{gpu=\"1\"} 20",
        "gpu_memory_free_bytes{gpu=\"1\"} 10"}) {
    EXPECT_THAT(text, HasSubstr("\nmillrace_" + std::string(line) + "\n"));
  }
}

TEST(ScrapedTest, OmitsWhatTheServerDoesNotDo) {
  const std::string text = PrintScraped({});
  for (const char* name :
       {"scrub", "certificate", "millrace_peers", "millrace_gpu_"}) {
    EXPECT_THAT(text, Not(HasSubstr(name)));
  }
}

}  // namespace
}  // namespace millrace
