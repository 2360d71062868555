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
  int per_address = 0;  // see FindAddress()
};

// Replaces zeros: `all` by three quarters of the files that this process may
// open, at most 16,384, and `per_address` by a quarter of `all`.
ConnectionLimits DecideLimits(const ConnectionLimits& given);

// Tracks which connections are open and where they come from. gRPC owns them
// and does not say when it closes one, but the kernel gives each socket a
// unique cookie, which shows whether a descriptor is still the same socket.
//
// When all places are taken, a connection from an address below its fair share
// (all places divided by the number of addresses) takes the place of the newest
// connection of the address that holds most, which is ended. gRPC closes that
// connection soon after; until then it is open without a place.
// Not thread-safe.
class OpenConnections {
 public:
  explicit OpenConnections(const ConnectionLimits& limits) : limits_(limits) {}

  enum class Verdict { kAdded, kTookPlace, kTooMany, kTooManyFromAddress };
  // Adds a socket connected from `address`, unless there are too many.
  // kTookPlace: added, and a connection from last_ended_address() was ended.
  Verdict Add(int socket, const std::string& address);
  const std::string& last_ended_address() const { return last_ended_address_; }

  // Number of open connections, which may be slightly out of date.
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
  // Forgets closed connections; does nothing if it ran only moments ago.
  void ForgetClosed();

  const ConnectionLimits limits_;
  absl::flat_hash_map<int, Known> open_;  // by descriptor
  // The descriptors that have a place, by address, newest last.
  absl::flat_hash_map<std::string, std::vector<int>> places_;
  size_t taken_places_ = 0;
  std::string last_ended_address_;
  SteadyTime next_scan_;
};

// The address of a connected socket's peer, as counted for the limits: an IPv4
// address, or an IPv6 network such as "2001:db8:1:2::/64", since one client may
// own every address in it. Empty if the socket is no longer connected.
std::string FindAddress(int socket);

}  // namespace millrace
