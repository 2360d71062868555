// SPDX-License-Identifier: Apache-2.0
#include "server/core/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>

#include "common/base/check.h"
#include "common/base/steady_time.h"
#include "server/load/refusal.h"

namespace millrace {
namespace {

const prometheus::Histogram::BucketBoundaries kSeconds = {
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};
// Leaf calls often take less than a millisecond.
const prometheus::Histogram::BucketBoundaries kCallSeconds = {
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
    0.05,   0.1,    0.2,    0.5,   1,     2,     5,    10};

constexpr std::array<std::string_view, 6> kMethods = {
    "Sample", "Gather", "Expand", "HasEdges", "Resolve", "Describe"};
// Those that servers call.
constexpr std::array<std::string_view, 3> kPeerMethods = {"Expand", "HasEdges",
                                                          "Resolve"};
// OK and the errors; see absl::StatusCode.
constexpr size_t kCodes = 17;

template <size_t kCount>
size_t IndexOf(const std::array<std::string_view, kCount>& methods,
               std::string_view method) {
  size_t index = 0;
  while (index < kCount && methods[index] != method) ++index;
  MILLRACE_CHECK(index < kCount);
  return index;
}
size_t IndexOf(std::string_view method) { return IndexOf(kMethods, method); }

// Adds a metric for each method to a family, so that all are there from the
// start and a call need not look for its own.
template <typename Metric, size_t kCount, typename... Args>
std::array<Metric*, kCount> AddEach(
    const std::array<std::string_view, kCount>& methods,
    prometheus::Family<Metric>& family, const Args&... args) {
  std::array<Metric*, kCount> metrics;
  for (size_t i = 0; i < kCount; ++i) {
    metrics[i] = &family.Add({{"method", std::string(methods[i])}}, args...);
  }
  return metrics;
}

template <typename Metric>
using PerMethod = std::array<Metric*, kMethods.size()>;

// A counter for each reason and method, which are all there from the start:
// what is refused during a flood must not cost a search.
std::array<PerMethod<prometheus::Counter>, kRefusalReasons.size()> AddRefusals(
    prometheus::Family<prometheus::Counter>& family) {
  std::array<PerMethod<prometheus::Counter>, kRefusalReasons.size()> counters;
  for (size_t i = 0; i < kRefusalReasons.size(); ++i) {
    const std::string reason(RefusalName(kRefusalReasons[i]));
    for (size_t j = 0; j < kMethods.size(); ++j) {
      counters[i][j] = &family.Add(
          {{"method", std::string(kMethods[j])}, {"reason", reason}});
    }
  }
  return counters;
}

// The counters of a family with the labels "method" and "code". Each is there
// from the first call that it counts, and is looked up only then, because that
// is slow.
// Threads: any.
class CallCounters {
 public:
  explicit CallCounters(prometheus::Family<prometheus::Counter>& family)
      : family_(family) {}

  void Count(std::string_view method, absl::StatusCode code) {
    auto& found = counters_[IndexOf(method)][static_cast<size_t>(code)];
    prometheus::Counter* counter = found.load(std::memory_order_acquire);
    if (counter == nullptr) {
      // Another thread that does the same gets the same counter.
      counter = &family_.Add({{"method", std::string(method)},
                              {"code", absl::StatusCodeToString(code)}});
      found.store(counter, std::memory_order_release);
    }
    counter->Increment();
  }

 private:
  using ByCode = std::array<std::atomic<prometheus::Counter*>, kCodes>;

  prometheus::Family<prometheus::Counter>& family_;
  std::array<ByCode, kMethods.size()> counters_ = {};
};

}  // namespace

struct ServerMetrics::State {
  prometheus::Family<prometheus::Counter>& Counters(const char* name,
                                                    const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  prometheus::Family<prometheus::Histogram>& Histograms(const char* name,
                                                        const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(
        registry);
  }

  prometheus::Registry registry;
  CallCounters calls{Counters("millrace_calls_total",
                              "Finished calls by RPC and status code.")};
  const std::array<PerMethod<prometheus::Counter>, kRefusalReasons.size()>
      refused = AddRefusals(Counters("millrace_refused_calls_total",
                                     "Refused calls, by RPC and reason."));
  const PerMethod<prometheus::Histogram> call_seconds =
      AddEach(kMethods,
              Histograms("millrace_call_seconds",
                         "Time from the arrival of a call to its end, by RPC."),
              kCallSeconds);
  const PerMethod<prometheus::Counter> received = AddEach(
      kMethods, Counters("millrace_received_bytes_total",
                         "Bytes of requests, by RPC, as they arrived."));
  const PerMethod<prometheus::Gauge> in_flight = AddEach(
      kMethods, prometheus::BuildGauge()
                    .Name("millrace_inflight_calls")
                    .Help("Calls that are running or waiting to run, by RPC.")
                    .Register(registry));
  const PerMethod<prometheus::Counter> sent =
      AddEach(kMethods,
              Counters("millrace_sent_bytes_total",
                       "Bytes of answers that were made to be sent, by RPC."));
  prometheus::Histogram& hops = Histograms("millrace_sample_seconds",
                                           "Time taken by all hops of a batch.")
                                    .Add({}, kSeconds);
  prometheus::Histogram& peer_wait =
      Histograms("millrace_peer_wait_seconds",
                 "Time a batch waited for servers of other partitions.")
          .Add({}, kSeconds);
  const std::array<prometheus::Histogram*, kPeerMethods.size()> peer_calls =
      AddEach(
          kPeerMethods,
          Histograms("millrace_peer_call_seconds",
                     "Time that other servers took to answer a call, by RPC."),
          kCallSeconds);
  RecentCalls samples{SteadyNow()};
};

ServerMetrics::ServerMetrics() : state_(std::make_unique<State>()) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::AddRequest(std::string_view method, uint64_t bytes) {
  state_->received[IndexOf(method)]->Increment(static_cast<double>(bytes));
}

void ServerMetrics::StartCall(std::string_view method) {
  state_->in_flight[IndexOf(method)]->Increment();
}

void ServerMetrics::StopCall(std::string_view method) {
  state_->in_flight[IndexOf(method)]->Decrement();
}

void ServerMetrics::CountCall(std::string_view method,
                              const absl::Status& status, absl::Duration time) {
  state_->call_seconds[IndexOf(method)]->Observe(absl::ToDoubleSeconds(time));
  state_->calls.Count(method, status.code());
  if (const std::optional<RefusalReason> reason = RefusalOf(status)) {
    state_->refused[static_cast<size_t>(*reason)][IndexOf(method)]->Increment();
  }
  if (method == "Sample" && status.ok()) {
    state_->samples.Note(time, SteadyNow());
  }
}

void ServerMetrics::AddSent(std::string_view method, uint64_t bytes) {
  state_->sent[IndexOf(method)]->Increment(static_cast<double>(bytes));
}

void ServerMetrics::ObserveSample(absl::Duration hops,
                                  absl::Duration peer_wait) {
  state_->hops.Observe(absl::ToDoubleSeconds(hops));
  state_->peer_wait.Observe(absl::ToDoubleSeconds(peer_wait));
}

void ServerMetrics::ObservePeerCall(std::string_view method,
                                    absl::Duration time) {
  state_->peer_calls[IndexOf(kPeerMethods, method)]->Observe(
      absl::ToDoubleSeconds(time));
}

RecentCalls::Summary ServerMetrics::recent_samples() const {
  return state_->samples.Summarize(SteadyNow());
}

MetricFamilies ServerMetrics::Collect() const {
  return state_->registry.Collect();
}

}  // namespace millrace
