// SPDX-License-Identifier: Apache-2.0
// What `millrace status` shows of the servers of a fleet.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/grpc/fleet/fleet_member.h"

namespace millrace {

// A table with a line for each server, and below it a line for each thing that
// is wrong with one. At most 120 columns wide, unless an address has more than
// 21 characters or a server has very many partitions. Ends with '\n'.
std::string StatusTable(const std::vector<FleetMemberInfo>& members);

// The same as a list of JSON objects.
nlohmann::ordered_json StatusJson(const std::vector<FleetMemberInfo>& members);

// Partitions, of `parts`, that no ready server serves.
std::vector<int> MissingPartitions(const std::vector<FleetMemberInfo>& members,
                                   int parts);

// Whether the server takes new work.
bool TakesWork(const FleetMemberInfo& member);

}  // namespace millrace
