// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/grpc/fleet/fleet_member.h"

namespace millrace {

// Destroys members, and thereby their channels, once they are no longer held.
// Members are often released in gRPC callbacks, but gRPC joins its callback
// threads when the last channel of a process is destroyed, so that must not
// happen in a callback.
// Threads: any thread may call any method, except that EndUnused() and the
// destructor must not run on a gRPC thread.
class MemberKeeper {
 public:
  MemberKeeper();
  // Waits until no member is held, and destroys them all.
  ~MemberKeeper();
  MemberKeeper(const MemberKeeper&) = delete;
  MemberKeeper& operator=(const MemberKeeper&) = delete;

  // Makes a member that returns to the keeper when it is no longer held.
  std::shared_ptr<FleetMember> Make();

  // Destroys the members that have been released since the last call.
  void EndUnused();

 private:
  struct State;
  // Shared with the members.
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
