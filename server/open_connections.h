// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/steady_time.h"

namespace millrace {

struct ConnectionLimits {
  int all = 0;
  int per_address = 0;  // see AddressOf()
};

// Fills in what is 0: three quarters of the files that this process may open,
// at most 16,384, and a quarter of all for one address.
ConnectionLimits DecideLimits(const ConnectionLimits& given);

// Keeps track of which connections are open and where they come from. gRPC owns
// them and does not say when it closes one; but the kernel gives each socket a
// cookie of its own, so a look at a descriptor shows whether it is still the
// same socket.
//
// When all places are taken, a connection from an address below its fair share
// (all places divided by the addresses) takes the place of the newest
// connection of the address that has most, which is ended. gRPC closes that one
// soon after; until then it is open, but has no place. Threads: one at a time.
class OpenConnections {
 public:
  explicit OpenConnections(const ConnectionLimits& limits) : limits_(limits) {}

  enum class Verdict { kAdded, kTookPlace, kTooMany, kTooManyFromAddress };
  // Adds a socket that comes from `address`, unless there are too many.
  // kTookPlace: a connection from last_ended_address() was ended to make room.
  Verdict Add(int socket, const std::string& address);
  const std::string& last_ended_address() const { return last_ended_address_; }

  // How many were open at the last look, which was moments ago.
  int Count();

 private:
  struct Known {
    uint64_t cookie = 0;
    std::string address;
    bool has_place = true;
  };
  Verdict Judge(const std::string& address) const;
  size_t HeldBy(const std::string& address) const;
  // Ends a connection of another address to make room for `address`, if the
  // shares allow it. Returns whether it did.
  bool TakePlaceFor(const std::string& address);
  void GiveUpPlace(int socket, Known& known);
  void Forget(int socket);
  // Forgets those that are closed; does nothing right after a look.
  void Look();

  const ConnectionLimits limits_;
  absl::flat_hash_map<int, Known> open_;  // by descriptor
  // The descriptors that have a place, by address, the newest last.
  absl::flat_hash_map<std::string, std::vector<int>> places_;
  size_t taken_places_ = 0;
  std::string last_ended_address_;
  SteadyTime next_look_;
};

// Where a connected socket comes from, as the limits see it: an IPv4 address,
// or an IPv6 network such as "2001:db8:1:2::/64", since one client may have all
// addresses of it. Empty: the socket is no longer connected.
std::string AddressOf(int socket);

}  // namespace millrace
