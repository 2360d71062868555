// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/metrics/families.h"
#include "server/load/recent_calls.h"

namespace millrace {

// What a server counts, for Prometheus, while it answers calls;
// docs/protocol.md lists all metrics. RPCs are named "Sample", "Gather",
// "Expand", "HasEdges", "Resolve" and "Describe".
// Threads: any.
class ServerMetrics {
 public:
  ServerMetrics();
  ~ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // A request of `bytes` bytes has arrived, whose call may be refused.
  void AddRequest(std::string_view method, uint64_t bytes);
  // A call runs from now on.
  void StartCall(std::string_view method);
  // It no longer runs. Each StartCall() has one.
  void StopCall(std::string_view method);
  // Counts a call that has ended, `time` after it arrived, whether or not it
  // ever ran; and why, if it was refused (see RefusalOf()).
  void CountCall(std::string_view method, const absl::Status& status,
                 absl::Duration time);
  // `bytes` of an answer have been made: a frame, or a whole reply.
  void AddSent(std::string_view method, uint64_t bytes);
  // Records the time taken by all hops of one batch, and the part of it spent
  // waiting for other servers.
  void ObserveSample(absl::Duration hops, absl::Duration peer_wait);
  // Records the time that another server took to answer a call of "Expand",
  // "HasEdges" or "Resolve", or to fail.
  void ObservePeerCall(std::string_view method, absl::Duration time);

  // Sample calls that ended well.
  RecentCalls::Summary recent_samples() const;

  MetricFamilies Collect() const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace millrace
