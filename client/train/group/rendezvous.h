// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a group find each other: rank 0 listens at the group's
// address, and the others wait until it does.
// All waits log what they wait for, and end with CANCELLED when the program is
// interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/train/group/group.h"
#include "common/base/steady_time.h"
#include "common/file/file.h"
#include "common/net/socket_address.h"

namespace millrace {

// Logs what a rank is waiting for and for how much longer, after a second and
// then every 5 seconds. Not thread-safe.
class WaitNotice {
 public:
  explicit WaitNotice(SteadyTime deadline);
  void Say(const std::string& what);

 private:
  const SteadyTime deadline_;
  SteadyTime next_;
};

// A socket of rank 0, bound but not listening yet.
struct BoundSocket {
  UniqueFd fd;
  std::string address;    // numeric
  bool loopback = false;  // no other host can reach it
};

// Returns the addresses of a host name, like Resolve() in
// common/net/socket_address.h. May be called on another thread.
using HostLookup = std::function<absl::StatusOr<std::vector<SocketAddress>>(
    const std::string& host, uint16_t port)>;

// Binds rank 0's socket to the group's address alone: the first address of its
// host name that this host has, IPv4 before IPv6. Waits up to `timeout` for the
// name to have such an address: name servers may still give that of a host on
// which rank 0 ran before. FAILED_PRECONDITION: this host has none of the
// name's addresses, or the address is 0.0.0.0 or ::. UNAVAILABLE: the name has
// no address, or the port is taken.
absl::StatusOr<BoundSocket> BindAtMeetingPoint(const GroupAddress& group,
                                               absl::Duration timeout,
                                               const HostLookup& lookup);
// Asks the system for the addresses.
absl::StatusOr<BoundSocket> BindAtMeetingPoint(const GroupAddress& group,
                                               absl::Duration timeout);

struct MeetingPoint {
  std::string address;      // numeric; somebody listens there
  std::string own_address;  // numeric, of this end of the connection
  bool loopback = false;    // no other host can reach `address`
};

// Waits up to `timeout` until somebody listens at the group's address.
// UNAVAILABLE: nobody does (says why).
absl::StatusOr<MeetingPoint> FindMeetingPoint(const GroupAddress& group,
                                              absl::Duration timeout);

// Returns the interfaces that GLOO_SOCKET_IFNAME names, separated by commas;
// none if it is not set. INVALID_ARGUMENT: this host has no such interface with
// an address (names those that it has).
absl::StatusOr<std::vector<std::string>> GlooInterfaces();

}  // namespace millrace
