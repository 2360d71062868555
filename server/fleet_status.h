// SPDX-License-Identifier: Apache-2.0
// What the status page of a server shows.
#pragma once

#include <string>
#include <vector>

#include "common/grpc/fleet/fleet_member.h"
#include "common/tier/store_memory_use.h"

namespace millrace {

// The fleet as one of its servers sees it.
struct FleetStatus {
  std::string state;    // "ready", "draining", "damaged" or "failed"
  std::string address;  // of this server, which peers may know by another one
  std::string version;
  std::string store;  // the folder's name
  std::string store_uuid;
  std::string fingerprint;
  int parts = 0;
  bool has_peers = false;  // whether it has a list of them
  // This server, and all in the list of peers, in its order. One that has the
  // same instance as this one is this one.
  FleetMemberInfo self;
  std::vector<FleetMemberInfo> peers;
  // Of this server: its mapped files and copies of them, and its GPUs.
  std::vector<MemoryCopy> memory;
  std::vector<GpuMemory> gpus;
};

// Returns the JSON object that the status page shows; docs/protocol.md, section
// 8, describes it. Any thread.
std::string PrintFleetStatus(const FleetStatus& status);

// The same while the store is being opened.
std::string PrintStartingStatus();

}  // namespace millrace
