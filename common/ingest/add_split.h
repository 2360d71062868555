// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/manifest.h"

namespace millrace {

struct NewSplit {
  std::string name;
  std::string type;           // empty: the only node type
  std::filesystem::path ids;  // .npy, original ids or a bool mask
};

// Adds a split to a dataset or store (all partitions must be there). The
// store gets a new fingerprint: the files of the split are written first,
// then store.json is replaced by one rename. One writer at a time.
// ALREADY_EXISTS: the type has a split of this name. INVALID_ARGUMENT: an id
// out of range or twice, no such type, a name that is no folder name.
absl::StatusOr<SplitInfo> AddSplit(const std::filesystem::path& store,
                                   const NewSplit& split);

}  // namespace millrace
