// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/array.h"

namespace millrace {

// Seeds that the user lists one by one, in order. All non-empty columns have
// the same length, except for `negatives`.
struct ExplicitSeeds {
  // Original ids; for edge seeds, of the sources.
  std::vector<int64_t> ids = {};
  // Times for temporal jobs. If empty, the seeds' own times.
  std::vector<int64_t> times = {};

  // For edge seeds only.
  std::vector<int64_t> dst = {};         // original ids of destinations
  std::vector<int32_t> edge_types = {};  // may be empty
  Array labels = {};                     // [n], or absent
  std::vector<int64_t> negatives = {};   // [n * k] destinations, or empty

  size_t size() const { return ids.size(); }
  // The same columns of some of the seeds, in the order of `positions`.
  ExplicitSeeds At(const std::vector<uint64_t>& positions) const;
};

}  // namespace millrace
