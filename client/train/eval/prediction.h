// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "absl/status/status.h"

namespace millrace {

// Writes a matrix as a .npy file of float32. Replaces an existing file in one
// step. Fails like WriteNpy() or with an error of the file system.
absl::Status WriteMatrix(const std::filesystem::path& path,
                         const at::Tensor& rows);

}  // namespace millrace
