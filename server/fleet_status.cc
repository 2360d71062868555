// SPDX-License-Identifier: Apache-2.0
#include "server/fleet_status.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_lines.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using Json = nlohmann::ordered_json;

double UnixNow() {
  return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
}

// Texts of other servers may hold anything.
std::string Print(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false,
                   Json::error_handler_t::replace);
}

// A server of the list, and whether it is this one.
struct Row {
  FleetMemberInfo info;
  bool self = false;
};

// This server is in its place in the list, under the name that it has there, or
// before all others.
std::vector<Row> RowsOf(const FleetStatus& status) {
  std::vector<Row> rows;
  bool listed = false;
  for (const FleetMemberInfo& peer : status.peers) {
    const bool self = !listed && !peer.instance.empty() &&
                      peer.instance == status.self.instance;
    rows.push_back({self ? status.self : peer, self});
    rows.back().info.address = peer.address;
    listed |= self;
  }
  if (listed) return rows;
  rows.insert(rows.begin(), {status.self, true});
  rows.front().info.address = status.address;
  return rows;
}

Json MissingPartitions(const std::vector<Row>& rows, int parts) {
  std::vector<bool> served(static_cast<size_t>(parts));
  for (const Row& row : rows) {
    if (row.info.state != FleetMemberInfo::State::kReady) continue;
    for (const int part : row.info.partitions) {
      if (part >= 0 && part < parts) served[static_cast<size_t>(part)] = true;
    }
  }
  Json missing = Json::array();
  for (int part = 0; part < parts; ++part) {
    if (!served[static_cast<size_t>(part)]) missing.push_back(part);
  }
  return missing;
}

Json LoadJson(const ServerLoad& load) {
  return {{"busy_ratio", load.sampling_busy_ratio},
          {"batches_per_second", load.batches_per_second},
          {"p50_seconds", absl::ToDoubleSeconds(load.sample_p50)},
          {"p99_seconds", absl::ToDoubleSeconds(load.sample_p99)},
          {"calls", load.sample_calls},
          {"resident_bytes", load.resident_bytes}};
}

Json ServerJson(const Row& row) {
  const FleetMemberInfo& info = row.info;
  Json damaged = Json::object();
  for (const auto& [part, what] : info.damaged) damaged[StrCat(part)] = what;
  return {{"address", info.address},
          {"self", row.self},
          {"state", StateName(info.state)},
          {"partitions", info.partitions},
          {"damaged", std::move(damaged)},
          {"version", info.version},
          {"error", FirstLine(info.error)},
          {"failure", info.failure},
          {"leaf_only", info.leaf_only},
          {"uptime_seconds", absl::ToDoubleSeconds(info.uptime)},
          {"inflight_bytes", info.inflight_bytes},
          {"max_inflight_bytes", info.max_inflight_bytes},
          {"load", LoadJson(info.load)}};
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
    all.push_back({{"device", gpu.device},
                   {"free_bytes", gpu.free_bytes},
                   {"total_bytes", gpu.total_bytes}});
  }
  return all;
}

}  // namespace

std::string PrintFleetStatus(const FleetStatus& status) {
  const std::vector<Row> rows = RowsOf(status);
  Json servers = Json::array();
  for (const Row& row : rows) servers.push_back(ServerJson(row));
  return Print({{"kind", "server"},
                {"now", UnixNow()},
                {"state", status.state},
                {"address", status.address},
                {"version", status.version},
                {"store",
                 {{"name", status.store},
                  {"uuid", status.store_uuid},
                  {"fingerprint", status.fingerprint},
                  {"parts", status.parts}}},
                {"has_peers", status.has_peers},
                {"missing_partitions", MissingPartitions(rows, status.parts)},
                {"servers", std::move(servers)},
                {"memory", MemoryJson(status.memory)},
                {"gpus", GpusJson(status.gpus)}});
}

std::string PrintStartingStatus() {
  return Print({{"kind", "server"}, {"now", UnixNow()}, {"state", "starting"}});
}

}  // namespace millrace
