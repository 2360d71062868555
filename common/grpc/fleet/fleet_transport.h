// SPDX-License-Identifier: Apache-2.0
// How a Fleet reaches its members: over gRPC, or through a fake in a test.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/base/steady_time.h"
#include "common/grpc/fleet/fleet_member.h"
#include "common/grpc/fleet/fleet_options.h"

namespace millrace {

namespace v1 {
class DescribeReply;
}  // namespace v1

// One Describe call, which asks a member what it serves.
// Threads: any thread may call any method.
class DescribeCall {
 public:
  struct Options {
    SteadyTime deadline;
    // Whether the server should look in its store for splits that it does not
    // know yet.
    bool look_for_splits = false;
    // Whether to restore the connections to the member.
    bool reconnect = false;
  };
  // `reply` is valid during the call of this function, which may end the
  // DescribeCall.
  using Done = std::function<void(const absl::Status& status,
                                  const v1::DescribeReply& reply)>;

  virtual ~DescribeCall() = default;
  // Must be called once. Calls `done` exactly once, on any thread.
  virtual void Start(const Options& options, Done done) = 0;
  // Makes the call end with CANCELLED soon, unless it has ended. May be called
  // before Start().
  virtual void Cancel() = 0;
};

// Threads: any thread may call any method.
class FleetTransport {
 public:
  virtual ~FleetTransport() = default;
  // Opens the connections to a member, without waiting for them. The transport
  // must outlive it.
  virtual void Connect(FleetMember& member) const = 0;
  virtual std::unique_ptr<DescribeCall> NewDescribeCall(
      std::shared_ptr<FleetMember> member) const = 0;
};

std::unique_ptr<FleetTransport> MakeGrpcTransport(const FleetOptions& options);

}  // namespace millrace
