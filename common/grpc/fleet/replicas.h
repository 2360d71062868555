// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/steady_time.h"

namespace millrace {

struct FleetMember;

// What a hedged call needs to know of the servers: the Fleet, or a fake.
// Threads: any thread may call any method.
class Replicas {
 public:
  virtual ~Replicas() = default;

  // Picks a server of `partition` that is not in `avoid`. Does not wait if
  // `deadline` has passed. UNAVAILABLE: there is none.
  virtual absl::StatusOr<std::shared_ptr<FleetMember>> Pick(
      int partition, SteadyTime deadline,
      const std::vector<const FleetMember*>& avoid) = 0;

  // Starts to find out whether a silent server is alive.
  virtual void Suspect(const FleetMember& member) = 0;
  // Whether a server does not answer or was refused.
  virtual bool IsLost(const FleetMember& member) const = 0;
};

}  // namespace millrace
