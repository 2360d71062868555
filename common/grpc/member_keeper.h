// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/grpc/fleet.h"

namespace millrace {

// Ends the channels of members that nobody holds any more. gRPC joins the
// threads of its callbacks with the last channel of a process, so that one
// must not end in a callback, where members are often let go.
// Threads: any, but EndUnused() and the destructor on none of gRPC's.
class MemberKeeper {
 public:
  MemberKeeper();
  // Waits until nobody holds a member, and ends all.
  ~MemberKeeper();
  MemberKeeper(const MemberKeeper&) = delete;
  MemberKeeper& operator=(const MemberKeeper&) = delete;

  // A member whose last holder hands it to the keeper.
  std::shared_ptr<FleetMember> Make();

  // Ends what has been let go since the last call.
  void EndUnused();

 private:
  struct State;
  // Shared with the members.
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
