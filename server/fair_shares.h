// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace millrace {

// What each client holds of something limited, such as calls or bytes, and
// what its fair share of the limit is: all of it while no other client holds
// anything, and an equal part of it among several (max-min fairness: who needs
// less than a share leaves the rest to others, since shares are enforced only
// where room is short).
// Threads: one at a time.
class FairShares {
 public:
  explicit FairShares(uint64_t limit) : limit_(limit) {}

  void Add(std::string_view client, uint64_t amount);
  // `client` must hold that much.
  void Remove(std::string_view client, uint64_t amount);

  uint64_t HeldBy(std::string_view client) const;
  // Counts `client` among those that hold something. 0: there are more clients
  // than what is limited.
  uint64_t ShareOf(std::string_view client) const;

  uint64_t limit() const { return limit_; }
  uint64_t total() const { return total_; }

 private:
  const uint64_t limit_;
  uint64_t total_ = 0;
  absl::flat_hash_map<std::string, uint64_t> held_;  // no zeros
};

}  // namespace millrace
