// SPDX-License-Identifier: Apache-2.0
// Which entries of lists are drawn from, for code that nvcc does not compile.
#pragma once

#include <cstdint>
#include <vector>

#include "common/cuda/graph/device_lists.h"

namespace millrace::cuda {

// Entries that are left out of the lists of one relation, by the node that owns
// the list: those of the node owners[n] are entries[begins[n]] up to but not
// including entries[begins[n + 1]].
struct ExcludedLists {
  std::vector<uint64_t> owners;  // ids, ascending
  std::vector<uint64_t> begins = {0};
  std::vector<ExcludedEntry> entries;  // ascending for each owner
  bool timed = false;                  // see ExcludedEntry
};

// The filter of one relation. Without members and excluded entries, all entries
// are drawn from.
struct HopFilter {
  // The nodes of the neighbours' type that may be neighbours, in the device's
  // memory: bit v % 64 of word v / 64 is that of node v. Null if all may.
  const uint64_t* members = nullptr;
  ExcludedLists excluded = {};
};

}  // namespace millrace::cuda
