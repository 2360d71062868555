// SPDX-License-Identifier: Apache-2.0
// What programs tell people and other programs of the servers of a fleet.
// Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "common/grpc/fleet/fleet_member.h"

namespace millrace {

// Whether the server takes new work: it is ready, its GPUs work, and it has an
// intact partition.
bool TakesWork(const FleetMemberInfo& member);

// Partitions, of `parts`, that no server serves which takes work. Ascending.
std::vector<int> MissingPartitions(const std::vector<FleetMemberInfo>& members,
                                   int parts);

// How many members before this one in the list have the same partition; if it
// has several, the maximum over its partitions.
int ReplicaNumber(const std::vector<FleetMemberInfo>& members, size_t index);

// A list with an object for each member, as docs/protocol.md, section 8,
// describes it. Texts are what the servers said, and may hold any bytes; see
// JsonLine().
nlohmann::ordered_json MembersJson(const std::vector<FleetMemberInfo>& members);

}  // namespace millrace
