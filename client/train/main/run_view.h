// SPDX-License-Identifier: Apache-2.0
// What the pages of a trainer show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/remote_batch_source.h"
#include "client/train/run/run_monitor.h"

namespace millrace {

// What a source of batches from servers has done so far.
struct FleetUse {
  int64_t calls = 0;
  int64_t hedged_calls = 0;
  int64_t retries = 0;
  uint64_t received_bytes = 0;
  std::optional<CachedRowCounts> cached_rows;
  std::vector<KnownServer> servers;
};
FleetUse UseOf(const RemoteBatchSource& source);

// A trainer at one moment.
struct RunView {
  RunSnapshot run;
  std::string source;  // as given, such as "store cora-2"
  // Absent if batches are made in this process, or the source is not open yet.
  std::optional<FleetUse> fleet;
};

}  // namespace millrace
