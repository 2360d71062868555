// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace millrace {

// What Prometheus sees of a server; docs/protocol.md lists the names.
// Threads: any.
class ServerMetrics {
 public:
  // Read at each scrape.
  struct Gauges {
    std::function<double()> inflight_bytes;
    std::function<double()> running_calls;
    double max_inflight_bytes = 0;
    std::function<double()> peer_calls;  // to other servers, so far
    std::function<double()> hedged_peer_calls;
    std::function<double()> certificate_end;  // Unix time; empty: no TLS
  };

  ServerMetrics();
  ~ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // Counts a finished call of an RPC ("Sample", ...).
  void CountCall(std::string_view method, const absl::Status& status);
  // Adds payload bytes handed to gRPC.
  void AddBytes(uint64_t bytes);
  // Time that one batch took: all of its hops, and the part of it that waited
  // for other servers.
  void ObserveSample(absl::Duration hops, absl::Duration peer_wait);

  // Serves /metrics at "host:port" from now on. UNAVAILABLE: cannot listen.
  absl::Status Expose(const std::string& address, Gauges gauges);
  // Ends it; the gauges are not read any more.
  void StopExposing();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace millrace
