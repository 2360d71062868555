// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace millrace {

// Reads the secret of a group of trainers on several hosts: the bytes of a
// file. Logs a warning if other users can read the file.
// INVALID_ARGUMENT: fewer than 16 bytes. Also errors of ReadFile(). All name
// --rendezvous-secret.
absl::StatusOr<std::string> ReadGroupSecret(const std::string& path);

}  // namespace millrace
