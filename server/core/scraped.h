// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/thread_pool.h"
#include "common/grpc/fleet/member_state.h"
#include "common/metrics/families.h"
#include "common/sample/feature_rows.h"
#include "common/sample/place_counts.h"
#include "common/tier/store_memory_use.h"

namespace millrace {

// The values of a server's metrics that are kept elsewhere and read at each
// scrape; counters are what they are so far.
struct Scraped {
  struct StoreNames {
    std::string uuid;
    std::string fingerprint;
    std::string dataset_fingerprint;
    int parts = 0;
  };
  struct Pool {
    int threads = 0;
    ThreadPool::Load load = {};
  };
  // An RPC's limit, and how many clients have calls that count towards it.
  struct CallLimit {
    std::string_view method;
    int max_calls = 0;
    size_t clients = 0;
  };
  struct Scrub {
    uint64_t bytes = 0;
    uint64_t damaged_files = 0;
    uint64_t passes = 0;
  };

  StoreNames store = {};
  std::map<int, bool> partitions = {};  // those served; whether it is intact
  bool ready = false;
  bool draining = false;
  Pool sampling = {};
  Pool leaf = {};
  std::vector<CallLimit> limits = {};
  uint64_t inflight_bytes = 0;
  uint64_t max_inflight_bytes = 0;
  uint64_t calls_ended_for_others = 0;
  int64_t peer_calls = 0;  // to other servers
  int64_t hedged_peer_calls = 0;
  // How many servers of the fleet are in each state; nullopt without peers.
  std::optional<StateCounts> peers = {};
  int open_connections = 0;
  uint64_t refused_connections = 0;
  uint64_t connections_ended_for_others = 0;
  size_t damaged_partitions = 0;
  std::optional<Scrub> scrub = {};  // nullopt without a scrubber
  HopCounts hops = {};
  FeatureRowCounts feature_rows = {};
  std::vector<MemoryCopy> copies = {};
  std::vector<GpuMemory> gpus = {};
  // Unix time; nullopt without TLS.
  std::optional<double> certificate_expiry = {};
};

MetricFamilies FamiliesOf(const Scraped& scraped);

// The two of them that a server has before its store is open.
prometheus::MetricFamily ReadyFamily(bool ready);
prometheus::MetricFamily DrainingFamily(bool draining);

}  // namespace millrace
