// SPDX-License-Identifier: Apache-2.0
// What `millrace status` shows of the servers of a fleet.
#pragma once

#include <string>
#include <vector>

#include "common/grpc/fleet/fleet_member.h"

namespace millrace {

// A table with a line for each server, and below it a line for each thing that
// is wrong with one. At most 120 columns wide, unless an address has more than
// 21 characters or a server has very many partitions. Ends with '\n'.
// What servers say of themselves cannot disturb a terminal.
std::string StatusTable(const std::vector<FleetMemberInfo>& members);

}  // namespace millrace
