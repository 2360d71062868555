// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/families.h"

#include <prometheus/metric_type.h>
#include <prometheus/text_serializer.h>

#include <iterator>
#include <utility>

namespace millrace {

prometheus::MetricFamily GaugeFamily(std::string name, std::string help,
                                     const std::vector<MetricValue>& values) {
  prometheus::MetricFamily family{
      std::move(name), std::move(help), prometheus::MetricType::Gauge, {}};
  for (const MetricValue& one : values) {
    family.metric.emplace_back().label = one.labels;
    family.metric.back().gauge.value = one.value.value();
  }
  return family;
}

prometheus::MetricFamily CounterFamily(std::string name, std::string help,
                                       const std::vector<MetricValue>& values) {
  prometheus::MetricFamily family{
      std::move(name), std::move(help), prometheus::MetricType::Counter, {}};
  for (const MetricValue& one : values) {
    family.metric.emplace_back().label = one.labels;
    family.metric.back().counter.value = one.value.value();
  }
  return family;
}

prometheus::MetricFamily GaugeFamily(std::string name, std::string help,
                                     MetricNumber value) {
  return GaugeFamily(std::move(name), std::move(help),
                     std::vector<MetricValue>{{.labels = {}, .value = value}});
}

prometheus::MetricFamily CounterFamily(std::string name, std::string help,
                                       MetricNumber value) {
  return CounterFamily(
      std::move(name), std::move(help),
      std::vector<MetricValue>{{.labels = {}, .value = value}});
}

void AddFamilies(MetricFamilies more, MetricFamilies& all) {
  all.insert(all.end(), std::make_move_iterator(more.begin()),
             std::make_move_iterator(more.end()));
}

std::string PrintMetrics(const MetricFamilies& families) {
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace millrace
