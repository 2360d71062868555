// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// ALREADY_EXISTS: `path` exists.
absl::Status CheckNewOwnerFile(const std::filesystem::path& path);

// INVALID_ARGUMENT: `graph` has no owners. ALREADY_EXISTS: `path` exists.
absl::Status CheckOwners(const RawGraph& graph,
                         const std::filesystem::path& path);

// Writes the owners of a graph's nodes as int32, for `millrace partition
// --method given`: the .npy file `path` if there is one node type, otherwise a
// folder `path` with a file TYPE.npy for each type. INVALID_ARGUMENT: a number
// that is not a partition; the message names the position. Also the errors of
// CheckOwners().
absl::Status WriteOwners(const RawGraph& graph,
                         const std::filesystem::path& path);

}  // namespace millrace
