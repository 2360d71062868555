// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/array.h"

namespace millrace {

// Seeds that somebody names one by one, in order; columns that are not empty
// have equal length.
struct ExplicitSeeds {
  std::vector<int64_t> ids = {};    // original ids; of edge seeds: sources
  std::vector<int64_t> times = {};  // temporal jobs; empty: the seeds' own

  // Edge seeds only.
  std::vector<int64_t> dst = {};         // original ids of destinations
  std::vector<int32_t> edge_types = {};  // or empty
  Array labels = {};                     // [n], or absent
  std::vector<int64_t> negatives = {};   // [n * k] destinations, or empty

  size_t size() const { return ids.size(); }
  // The same columns of some of the seeds, in the order of `positions`.
  ExplicitSeeds At(const std::vector<uint64_t>& positions) const;
};

}  // namespace millrace
