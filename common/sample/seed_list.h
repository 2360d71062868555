// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace {

// Seeds that somebody names one by one, in order; columns that are not empty
// have equal length.
struct SeedList {
  std::vector<int64_t> ids;    // original ids
  std::vector<int64_t> times;  // temporal jobs; empty: the seeds' own

  size_t size() const { return ids.size(); }
  friend bool operator==(const SeedList&, const SeedList&) = default;
};

}  // namespace millrace
