// SPDX-License-Identifier: Apache-2.0
#include "server/fleet_status.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/json_line.h"
#include "common/base/unix_time.h"
#include "common/grpc/fleet/member_report.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

// The servers to show, one of which is this one.
struct Shown {
  std::vector<FleetMemberInfo> members;
  size_t self = 0;
};

// This server is in its place in the list, under the name that it has there, or
// before all others.
Shown ShownServers(const FleetStatus& status) {
  Shown shown = {.members = status.peers};
  std::vector<FleetMemberInfo>& members = shown.members;
  auto own = std::ranges::find_if(members, [&](const FleetMemberInfo& peer) {
    return !peer.instance.empty() && peer.instance == status.self.instance;
  });
  std::string address = status.address;
  if (own != members.end()) {
    address = own->address;
  } else {
    own = members.emplace(members.begin());
  }
  *own = status.self;
  own->address = std::move(address);
  shown.self = static_cast<size_t>(own - members.begin());
  return shown;
}

Json ServersJson(const Shown& shown) {
  Json servers = MembersJson(shown.members);
  for (size_t i = 0; i < servers.size(); ++i) {
    servers[i]["self"] = i == shown.self;
  }
  return servers;
}

Json MemoryJson(const std::vector<MemoryCopy>& copies) {
  Json memory = Json::array();
  for (const MemoryCopy& copy : copies) {
    memory.push_back({{"content", copy.content},
                      {"memory", copy.memory},
                      {"bytes", copy.bytes}});
  }
  return memory;
}

Json GpusJson(const std::vector<GpuMemory>& gpus) {
  Json all = Json::array();
  for (const GpuMemory& gpu : gpus) {
    all.push_back({{"gpu", gpu.device},
                   {"free_bytes", gpu.free_bytes},
                   {"total_bytes", gpu.total_bytes}});
  }
  return all;
}

}  // namespace

std::string PrintFleetStatus(const FleetStatus& status) {
  const Shown shown = ShownServers(status);
  return JsonLine(
      {{"kind", "server"},
       {"now", UnixSeconds(absl::Now())},
       {"state", status.state},
       {"address", status.address},
       {"version", status.version},
       {"store",
        {{"name", status.store},
         {"uuid", status.store_uuid},
         {"fingerprint", status.fingerprint},
         {"parts", status.parts}}},
       {"has_peers", status.has_peers},
       {"missing_partitions", MissingPartitions(shown.members, status.parts)},
       {"servers", ServersJson(shown)},
       {"memory", MemoryJson(status.memory)},
       {"gpus", GpusJson(status.gpus)}});
}

std::string PrintStartingStatus() {
  return JsonLine({{"kind", "server"},
                   {"now", UnixSeconds(absl::Now())},
                   {"state", "starting"},
                   {"version", MILLRACE_VERSION}});
}

}  // namespace millrace
