// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/array.h"

namespace millrace {

// Nodes by id and by original id.
struct ResolvedNodes {
  std::vector<uint64_t> ids;
  std::vector<int64_t> original_ids;  // parallel to ids

  size_t size() const { return ids.size(); }
  void Add(uint64_t id, int64_t original_id) {
    ids.push_back(id);
    original_ids.push_back(original_id);
  }
};

// The seeds of one batch, in order, as the sampler takes them.
struct ResolvedSeeds : ResolvedNodes {  // for edge seeds, the sources
  // Parallel to ids. Empty if the times are not known, or if the job is not
  // temporal and the seeds are not edges.
  std::vector<int64_t> times;

  // For edge seeds only.
  ResolvedNodes dst;
  Array label;                      // [n], or absent
  std::vector<int32_t> edge_types;  // may be empty
  ResolvedNodes negative_src;       // NegativeMode::kBinary
  ResolvedNodes negative_dst;       // given or drawn
  // Number of drawn negatives that are edges after all redraws.
  uint32_t false_negatives = 0;
};

}  // namespace millrace
