// SPDX-License-Identifier: Apache-2.0
// Errors about store files whose content is wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/graph/store.h"

namespace millrace {

// Makes a DATA_LOSS error with the message "PATH WHAT" and what to do. `file`
// is the path inside the store; FindDamagedFile() reads it from the error.
absl::Status DamagedFile(const Store& store, std::string_view file,
                         std::string_view what);

// The `file` of an error made by DamagedFile(); empty for other errors, and for
// errors that came from another process.
std::string FindDamagedFile(const absl::Status& status);

// The partition that a file of a store belongs to, if any.
std::optional<int> PartitionOfFile(std::string_view file);

}  // namespace millrace
