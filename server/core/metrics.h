// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sample/feature_rows.h"
#include "common/sample/place_counts.h"
#include "common/tier/store_memory_use.h"

namespace millrace {

// The metrics that a server exports to Prometheus; docs/protocol.md lists them.
// Threads: any.
class ServerMetrics {
 public:
  // Values kept elsewhere and read at each scrape.
  struct Scraped {
    double inflight_bytes = 0;
    double max_inflight_bytes = 0;
    double running_calls = 0;
    double calls_ended_for_others = 0;  // so far
    double peer_calls = 0;              // to other servers, so far
    double hedged_peer_calls = 0;
    double open_connections = 0;
    double refused_connections = 0;           // so far
    double connections_ended_for_others = 0;  // so far
    double damaged_partitions = 0;
    std::optional<double> scrubbed_bytes;  // nullopt without a scrubber
    HopCounts hops = {};                   // so far
    FeatureRowCounts feature_rows = {};    // so far
    std::vector<MemoryCopy> copies = {};
    std::vector<GpuMemory> gpus = {};
    // Unix time; nullopt without TLS.
    std::optional<double> certificate_expiry;
  };

  ServerMetrics();
  ~ServerMetrics();
  ServerMetrics(const ServerMetrics&) = delete;
  ServerMetrics& operator=(const ServerMetrics&) = delete;

  // Counts a finished call of an RPC ("Sample", ...).
  void CountCall(std::string_view method, const absl::Status& status);
  // Adds to the payload bytes handed to gRPC.
  void AddBytes(uint64_t bytes);
  // Records the time taken by all hops of one batch, and the part of it spent
  // waiting for other servers.
  void ObserveSample(absl::Duration hops, absl::Duration peer_wait);

  // All metrics in Prometheus' text format.
  std::string Print(const Scraped& scraped) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace millrace
