// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// ALREADY_EXISTS: `path` does.
absl::Status CheckNewOwnerFile(const std::filesystem::path& path);

// INVALID_ARGUMENT: `graph` has no owners. ALREADY_EXISTS: `path` does.
absl::Status CheckOwners(const RawGraph& graph,
                         const std::filesystem::path& path);

// Writes the owners of a graph's nodes for `millrace partition --method
// given`: the .npy file `path` where there is one node type, else the folder
// `path` with a file TYPE.npy for each. Errors of CheckOwners();
// INVALID_ARGUMENT: a number that is not a partition (names the place).
absl::Status WriteOwners(const RawGraph& graph,
                         const std::filesystem::path& path);

}  // namespace millrace
