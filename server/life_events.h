// SPDX-License-Identifier: Apache-2.0
// The events of a server's log that say how it was started and why it ended.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/sample/memory_options.h"
#include "common/tier/load_store.h"
#include "server/core/options.h"

namespace millrace {

class SamplerServer;
class Store;

// What a server is started with, as the user gave it.
struct ServerStart {
  std::string store;
  std::string partitions;  // "0,2" or "all"
  std::string metrics;     // HOST:PORT; empty for none
  MemoryOptions memory;
  bool verify = false;           // checks all files before it serves
  std::string drain_timeout;     // "30s"
  const ServerOptions& options;  // must outlive this
};

// Comes first, before the store is opened.
void LogStarting(const ServerStart& start);

// The server answers at `address`; loading took `loading`.
void LogServing(const SamplerServer& server, const Store& store,
                const std::string& address, absl::Duration loading);

// Comes last: the signal or the failure that ended the server, even while it
// opened its store, and how long it ran. Only a failure is logged as an error.
void LogEnded(const absl::Status& status, absl::Duration uptime);

}  // namespace millrace
