// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace millrace {

// Tracks how much of a limited resource, such as calls or bytes, each client
// holds, and each client's fair share: the whole limit while no other client
// holds anything, else an equal part. This amounts to max-min fairness: since
// shares are enforced only when the resource runs short, what one client leaves
// of its share is available to the others.
// Not thread-safe.
class FairShares {
 public:
  explicit FairShares(uint64_t limit) : limit_(limit) {}

  void Add(std::string_view client, uint64_t amount);
  // `client` must hold at least `amount`.
  void Remove(std::string_view client, uint64_t amount);

  uint64_t HeldBy(std::string_view client) const;
  // The share if `client` is counted among those that hold something; 0 if
  // there are more clients than units of the resource.
  uint64_t ShareOf(std::string_view client) const;

  size_t clients() const { return held_.size(); }  // that hold something
  uint64_t limit() const { return limit_; }
  uint64_t total() const { return total_; }

 private:
  const uint64_t limit_;
  uint64_t total_ = 0;
  absl::flat_hash_map<std::string, uint64_t> held_;  // has no zeros
};

}  // namespace millrace
