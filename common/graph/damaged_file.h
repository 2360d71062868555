// SPDX-License-Identifier: Apache-2.0
// Errors about store files whose content is wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/graph/store.h"

namespace millrace {

// DATA_LOSS: "PATH WHAT", and what to do. `file` is the path inside the store;
// the error carries it for programs to read (see DamagedFileOf).
absl::Status DamagedFile(const Store& store, std::string_view file,
                         std::string_view what);

// The `file` of an error made by DamagedFile(), empty for other errors. It is
// lost when the error travels to another process.
std::string DamagedFileOf(const absl::Status& status);

// The partition that a file of a store belongs to, if any.
std::optional<int> PartitionOfFile(std::string_view file);

}  // namespace millrace
