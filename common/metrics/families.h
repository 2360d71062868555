// SPDX-License-Identifier: Apache-2.0
// Families of metrics whose values are kept elsewhere and read at each scrape,
// and Prometheus' text format. For values that are counted as things happen,
// use the counters and histograms of a prometheus::Registry.
#pragma once

#include <prometheus/client_metric.h>
#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace millrace {

using MetricFamilies = std::vector<prometheus::MetricFamily>;
using MetricLabel = prometheus::ClientMetric::Label;  // {name, value}

// The Content-Type of PrintMetrics().
inline constexpr std::string_view kMetricsContentType =
    "text/plain; version=0.0.4; charset=utf-8";

// A number of any type, or a truth value, as Prometheus has it.
class MetricNumber {
 public:
  template <typename Number,
            typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  MetricNumber(Number number) : value_(static_cast<double>(number)) {}

  double value() const { return value_; }

 private:
  double value_;
};

// One value of a family, and the labels that tell it from the others.
struct MetricValue {
  std::vector<MetricLabel> labels;
  MetricNumber value = 0;
};

// A family of gauges, or of counters, whose names end in _total. `help` is a
// sentence. A family without values prints only its name and help.
prometheus::MetricFamily GaugeFamily(std::string name, std::string help,
                                     const std::vector<MetricValue>& values);
prometheus::MetricFamily CounterFamily(std::string name, std::string help,
                                       const std::vector<MetricValue>& values);

// The same with one value, without labels.
prometheus::MetricFamily GaugeFamily(std::string name, std::string help,
                                     MetricNumber value);
prometheus::MetricFamily CounterFamily(std::string name, std::string help,
                                       MetricNumber value);

// Moves the families of `more` to the end of `all`.
void AddFamilies(MetricFamilies more, MetricFamilies& all);

// The families in Prometheus' text format.
std::string PrintMetrics(const MetricFamilies& families);

}  // namespace millrace
