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

prometheus::ClientMetric Labelled(std::string name, std::string label) {
  prometheus::ClientMetric metric;
  metric.label.push_back({std::move(name), std::move(label)});
  return metric;
}

struct LabelledCount {
  std::string label;
  uint64_t count = 0;
};

prometheus::MetricFamily Counters(std::string name, std::string help,
                                  const std::string& label,
                                  const std::vector<LabelledCount>& counts) {
  prometheus::MetricFamily family{
      std::move(name), std::move(help), prometheus::MetricType::Counter, {}};
  for (const LabelledCount& one : counts) {
    family.metric.push_back(Labelled(label, one.label));
    family.metric.back().counter.value = static_cast<double>(one.count);
  }
  return family;
}

void AddCopies(const std::vector<MemoryCopy>& copies,
               std::vector<prometheus::MetricFamily>& all) {
  if (copies.empty()) return;
  prometheus::MetricFamily family{"millrace_store_memory_bytes",
                                  "Copies of the store in memory.",
                                  prometheus::MetricType::Gauge,
                                  {}};
  for (const MemoryCopy& copy : copies) {
    family.metric.push_back(Labelled("content", std::string(copy.content)));
    family.metric.back().label.push_back({"memory", std::string(copy.memory)});
    family.metric.back().gauge.value = static_cast<double>(copy.bytes);
  }
  all.push_back(std::move(family));
}

void AddGpus(const std::vector<GpuMemory>& gpus,
             std::vector<prometheus::MetricFamily>& all) {
  if (gpus.empty()) return;
  prometheus::MetricFamily total{"millrace_gpu_memory_bytes",
                                 "Memory that a GPU has.",
                                 prometheus::MetricType::Gauge,
                                 {}};
  prometheus::MetricFamily free{"millrace_gpu_memory_free_bytes",
                                "Memory of a GPU that no process has taken.",
                                prometheus::MetricType::Gauge,
                                {}};
  for (const GpuMemory& gpu : gpus) {
    total.metric.push_back(Labelled("gpu", std::to_string(gpu.device)));
    total.metric.back().gauge.value = static_cast<double>(gpu.total_bytes);
    free.metric.push_back(Labelled("gpu", std::to_string(gpu.device)));
    free.metric.back().gauge.value = static_cast<double>(gpu.free_bytes);
  }
  all.push_back(std::move(total));
  all.push_back(std::move(free));
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
  all.push_back(Counters(
      "millrace_hops_total",
      "Hops by where they were sampled: of whole batches, or one for each "
      "request to draw from a relation of a partition.",
      "place", {{"gpu", scraped.hops.device}, {"cpu", scraped.hops.host}}));
  all.push_back(Counters("millrace_feature_rows_total",
                         "Feature rows by who has read them; gpu_pinned: GPUs, "
                         "from pinned memory.",
                         "place",
                         {{"gpu", scraped.feature_rows.gpu},
                          {"gpu_pinned", scraped.feature_rows.gpu_pinned},
                          {"cpu", scraped.feature_rows.cpu}}));
  AddCopies(scraped.copies, all);
  AddGpus(scraped.gpus, all);
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
