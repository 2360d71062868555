// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/array.h"

namespace millrace {

// Seeds that somebody names one by one, in order. All columns that are not
// empty have the same length.
struct ExplicitSeeds {
  std::vector<int64_t> ids = {};  // original ids, or those of edges' sources
  // For temporal jobs. If empty, the seeds have the times that the graph has.
  std::vector<int64_t> times = {};

  // For edge seeds only.
  std::vector<int64_t> dst = {};         // original ids of destinations
  std::vector<int32_t> edge_types = {};  // [n], or empty
  Array labels = {};                     // [n], or absent
  std::vector<int64_t> negatives = {};   // [n * k] destinations, or empty

  size_t size() const { return ids.size(); }
  // The same columns of some of the seeds, in the order of `positions`.
  ExplicitSeeds At(const std::vector<uint64_t>& positions) const;
};

}  // namespace millrace
