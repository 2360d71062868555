// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace millrace {

// The secret of a group of trainers on several hosts: the bytes of a file, at
// least 16 of them. Logs a warning if other users can read the file. Errors
// name --rendezvous-secret. INVALID_ARGUMENT: too short; others are those of
// ReadFile().
absl::StatusOr<std::string> ReadGroupSecret(const std::string& path);

}  // namespace millrace
