// SPDX-License-Identifier: Apache-2.0
// Why `millrace status` fails, and what to do about it.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/grpc/fleet/fleet_member.h"

namespace millrace {

// The members as they are to be shown once there is no more time: those that
// have not answered for `timeout` are unreachable.
std::vector<FleetMemberInfo> AfterTimeout(std::vector<FleetMemberInfo> members,
                                          absl::Duration timeout);

// UNAVAILABLE: one of the partitions 0 to `parts` - 1 has no server that takes
// new work.
absl::Status WhyNotServed(const std::vector<FleetMemberInfo>& members,
                          int parts);

// UNAVAILABLE: a member does not take new work.
absl::Status WhyNotAllReady(const std::vector<FleetMemberInfo>& members);

// Returns the error to end with if `status` says that nothing is known of the
// store, asking so many servers. Each server's reason has been printed already.
absl::Status WhyNoManifest(const absl::Status& status, size_t servers);

// The member's error, or UNAVAILABLE, if it does not take new work.
absl::Status WhyNotReady(const FleetMemberInfo& member);

}  // namespace millrace
