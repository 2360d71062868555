// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <exception>
#include <utility>
#include <vector>

#include "common/base/strings.h"

namespace millrace {
namespace {

const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};

// Reads the gauges when it is asked.
class GaugeReader final : public prometheus::Collectable {
 public:
  explicit GaugeReader(ServerMetrics::Gauges gauges)
      : gauges_(std::move(gauges)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    std::vector<prometheus::MetricFamily> all = {
        Gauge("millrace_inflight_bytes", "Bytes reserved by Sample calls.",
              gauges_.inflight_bytes()),
        Gauge("millrace_max_inflight_bytes",
              "Limit of millrace_inflight_bytes.", gauges_.max_inflight_bytes),
        Gauge("millrace_running_calls", "Streaming calls that run.",
              gauges_.running_calls()),
        Counter("millrace_peer_calls_total", "Calls to other servers.",
                gauges_.peer_calls()),
        Counter("millrace_hedged_peer_calls_total",
                "Calls to other servers that went to a second one too.",
                gauges_.hedged_peer_calls())};
    if (gauges_.certificate_end) {
      all.push_back(Gauge("millrace_tls_certificate_expiry_timestamp_seconds",
                          "When the certificate in use ends (Unix time).",
                          gauges_.certificate_end()));
    }
    return all;
  }

 private:
  static prometheus::MetricFamily Gauge(std::string name, std::string help,
                                        double value) {
    prometheus::ClientMetric metric;
    metric.gauge.value = value;
    return {std::move(name),
            std::move(help),
            prometheus::MetricType::Gauge,
            {std::move(metric)}};
  }

  static prometheus::MetricFamily Counter(std::string name, std::string help,
                                          double value) {
    prometheus::ClientMetric metric;
    metric.counter.value = value;
    return {std::move(name),
            std::move(help),
            prometheus::MetricType::Counter,
            {std::move(metric)}};
  }

  const ServerMetrics::Gauges gauges_;
};

}  // namespace

struct ServerMetrics::State {
  // Shared with the exposer, which asks for shared collectables.
  std::shared_ptr<prometheus::Registry> registry =
      std::make_shared<prometheus::Registry>();
  prometheus::Family<prometheus::Counter>& calls =
      prometheus::BuildCounter()
          .Name("millrace_calls_total")
          .Help("Finished calls by RPC and status code.")
          .Register(*registry);
  prometheus::Counter& bytes = prometheus::BuildCounter()
                                   .Name("millrace_sent_bytes_total")
                                   .Help("Payload bytes of streams.")
                                   .Register(*registry)
                                   .Add({});
  prometheus::Histogram& hops = prometheus::BuildHistogram()
                                    .Name("millrace_sample_seconds")
                                    .Help("Time of all hops of a batch.")
                                    .Register(*registry)
                                    .Add({}, kSeconds);
  prometheus::Histogram& peer_wait =
      prometheus::BuildHistogram()
          .Name("millrace_peer_wait_seconds")
          .Help("Time a batch waited for servers of other partitions.")
          .Register(*registry)
          .Add({}, kSeconds);
  std::shared_ptr<GaugeReader> gauges;
  std::unique_ptr<prometheus::Exposer> exposer;
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

void ServerMetrics::StopExposing() { state_->exposer.reset(); }

absl::Status ServerMetrics::Expose(const std::string& address, Gauges gauges) {
  // prometheus-cpp throws when it cannot listen.
  try {
    state_->exposer = std::make_unique<prometheus::Exposer>(address, 1);
    state_->gauges = std::make_shared<GaugeReader>(std::move(gauges));
    state_->exposer->RegisterCollectable(state_->registry);
    state_->exposer->RegisterCollectable(state_->gauges);
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        StrCat("cannot serve metrics at ", address, ": ", error.what(),
               "\nchoose another --metrics HOST:PORT"));
  }
  return absl::OkStatus();
}

}  // namespace millrace
