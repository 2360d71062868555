// SPDX-License-Identifier: Apache-2.0
#include "server/core/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

namespace millrace {
namespace {

const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};

prometheus::MetricFamily Gauge(std::string name, std::string help,
                               double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  return {std::move(name),
          std::move(help),
          prometheus::MetricType::Gauge,
          {std::move(metric)}};
}

prometheus::MetricFamily Counter(std::string name, std::string help,
                                 double value) {
  prometheus::ClientMetric metric;
  metric.counter.value = value;
  return {std::move(name),
          std::move(help),
          prometheus::MetricType::Counter,
          {std::move(metric)}};
}

std::vector<prometheus::MetricFamily> FamiliesOf(
    const ServerMetrics::Scraped& scraped) {
  std::vector<prometheus::MetricFamily> all = {
      Gauge("millrace_inflight_bytes", "Bytes reserved by Sample calls.",
            scraped.inflight_bytes),
      Gauge("millrace_max_inflight_bytes", "Limit on millrace_inflight_bytes.",
            scraped.max_inflight_bytes),
      Gauge("millrace_running_calls", "Streaming calls that are running.",
            scraped.running_calls),
      Counter("millrace_calls_ended_for_others_total",
              "Calls ended because other clients needed their place or memory.",
              scraped.calls_ended_for_others),
      Counter("millrace_peer_calls_total", "Calls to other servers.",
              scraped.peer_calls),
      Counter("millrace_hedged_peer_calls_total",
              "Calls to other servers that went to a second one too.",
              scraped.hedged_peer_calls),
      Gauge("millrace_open_connections", "Connections of clients and peers.",
            scraped.open_connections),
      Counter("millrace_refused_connections_total",
              "Connections closed on arrival because too many were open or "
              "no file descriptor was left.",
              scraped.refused_connections),
      Counter("millrace_connections_ended_for_others_total",
              "Connections ended because other addresses needed their place.",
              scraped.connections_ended_for_others),
      Gauge("millrace_damaged_partitions",
            "Partitions no longer served because a file is damaged.",
            scraped.damaged_partitions)};
  if (scraped.scrubbed_bytes.has_value()) {
    all.push_back(Counter("millrace_scrubbed_bytes_total",
                          "Bytes read and compared with checksums.",
                          *scraped.scrubbed_bytes));
  }
  if (scraped.certificate_expiry.has_value()) {
    all.push_back(Gauge("millrace_tls_certificate_expiry_timestamp_seconds",
                        "When the certificate in use expires (Unix time).",
                        *scraped.certificate_expiry));
  }
  return all;
}

}  // namespace

struct ServerMetrics::State {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& calls =
      prometheus::BuildCounter()
          .Name("millrace_calls_total")
          .Help("Finished calls by RPC and status code.")
          .Register(registry);
  prometheus::Counter& bytes = prometheus::BuildCounter()
                                   .Name("millrace_sent_bytes_total")
                                   .Help("Payload bytes of streams.")
                                   .Register(registry)
                                   .Add({});
  prometheus::Histogram& hops = prometheus::BuildHistogram()
                                    .Name("millrace_sample_seconds")
                                    .Help("Time taken by all hops of a batch.")
                                    .Register(registry)
                                    .Add({}, kSeconds);
  prometheus::Histogram& peer_wait =
      prometheus::BuildHistogram()
          .Name("millrace_peer_wait_seconds")
          .Help("Time a batch waited for servers of other partitions.")
          .Register(registry)
          .Add({}, kSeconds);
};

ServerMetrics::ServerMetrics() : state_(std::make_unique<State>()) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::CountCall(std::string_view method,
                              const absl::Status& status) {
  state_->calls
      .Add({{"method", std::string(method)},
            {"code", absl::StatusCodeToString(status.code())}})
      .Increment();
}

void ServerMetrics::AddBytes(uint64_t bytes) {
  state_->bytes.Increment(static_cast<double>(bytes));
}

void ServerMetrics::ObserveSample(absl::Duration hops,
                                  absl::Duration peer_wait) {
  state_->hops.Observe(absl::ToDoubleSeconds(hops));
  state_->peer_wait.Observe(absl::ToDoubleSeconds(peer_wait));
}

std::string ServerMetrics::Print(const Scraped& scraped) const {
  std::vector<prometheus::MetricFamily> all = state_->registry.Collect();
  for (prometheus::MetricFamily& family : FamiliesOf(scraped)) {
    all.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(all);
}

}  // namespace millrace
