// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "common/ingest/raw_graph.h"

namespace millrace {

// INVALID_ARGUMENT: `graph` has no names. ALREADY_EXISTS: a file that
// WriteNames() would write exists.
absl::Status CheckNames(const RawGraph& graph,
                        const std::filesystem::path& directory);

// Writes the names of a graph to text files in `directory`, which is created if
// it does not exist. Line i + 1 has the name with number i. Fails as
// CheckNames() does, or with FileError().
absl::Status WriteNames(const RawGraph& graph,
                        const std::filesystem::path& directory);

}  // namespace millrace
