// SPDX-License-Identifier: Apache-2.0
// Errors about a file of a store that does not hold what it should.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/graph/store.h"

namespace millrace {

// DATA_LOSS: "PATH WHAT", and what to do. `file` is the path inside the store,
// which the error keeps for programs (see DamagedFileOf).
absl::Status DamagedFile(const Store& store, std::string_view file,
                         std::string_view what);

// The `file` of an error that DamagedFile() made, else empty. It does not
// travel between processes.
std::string DamagedFileOf(const absl::Status& status);

// The partition that a file of a store belongs to, if any.
std::optional<int> PartitionOfFile(std::string_view file);

}  // namespace millrace
