// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/fleet/member_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/time.h"
#include "common/base/status_lines.h"
#include "common/base/strings.h"

namespace millrace {
namespace {

using MemberJson = nlohmann::ordered_json;

bool HasPartition(const FleetMemberInfo& member, int partition) {
  return std::ranges::find(member.partitions, partition) !=
         member.partitions.end();
}

MemberJson JsonOfMember(const FleetMemberInfo& member, int replica) {
  MemberJson damaged = MemberJson::object();
  for (const auto& [partition, what] : member.damaged) {
    damaged[StrCat(partition)] = what;
  }
  const ServerLoad& load = member.load;
  return {{"address", member.address},
          {"state", StateName(member.state)},
          {"partitions", member.partitions},
          {"replica", replica},
          {"inflight_bytes", member.inflight_bytes},
          {"max_inflight_bytes", member.max_inflight_bytes},
          {"uptime_seconds", absl::ToDoubleSeconds(member.uptime)},
          {"version", member.version},
          {"error", FirstLine(member.error)},
          {"damaged_partitions", std::move(damaged)},
          {"leaf_only", member.leaf_only},
          {"failure", member.failure},
          {"sampling_busy_ratio", load.sampling_busy_ratio},
          {"batches_per_second", load.batches_per_second},
          {"sample_p50_seconds", absl::ToDoubleSeconds(load.sample_p50)},
          {"sample_p99_seconds", absl::ToDoubleSeconds(load.sample_p99)},
          {"sample_calls", load.sample_calls},
          {"resident_bytes", load.resident_bytes}};
}

}  // namespace

bool TakesWork(const FleetMemberInfo& member) {
  return member.state == FleetMemberInfo::State::kReady &&
         !member.partitions.empty() && member.failure.empty();
}

std::vector<int> MissingPartitions(const std::vector<FleetMemberInfo>& members,
                                   int parts) {
  std::vector<bool> served(static_cast<size_t>(parts));
  for (const FleetMemberInfo& member : members) {
    if (!TakesWork(member)) continue;
    for (const int part : member.partitions) {
      if (part >= 0 && part < parts) served[static_cast<size_t>(part)] = true;
    }
  }
  std::vector<int> missing;
  for (int part = 0; part < parts; ++part) {
    if (!served[static_cast<size_t>(part)]) missing.push_back(part);
  }
  return missing;
}

int ReplicaNumber(const std::vector<FleetMemberInfo>& members, size_t index) {
  const auto end = members.begin() + static_cast<std::ptrdiff_t>(index);
  int number = 0;
  for (const int partition : members[index].partitions) {
    const auto before = std::count_if(
        members.begin(), end, [partition](const FleetMemberInfo& other) {
          return HasPartition(other, partition);
        });
    number = std::max(number, static_cast<int>(before));
  }
  return number;
}

nlohmann::ordered_json MembersJson(
    const std::vector<FleetMemberInfo>& members) {
  MemberJson all = MemberJson::array();
  for (size_t i = 0; i < members.size(); ++i) {
    all.push_back(JsonOfMember(members[i], ReplicaNumber(members, i)));
  }
  return all;
}

}  // namespace millrace
