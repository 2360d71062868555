// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>

#include "absl/status/status.h"

namespace millrace {

// Writes a float32 matrix as .npy; a file that is there is replaced whole.
// Errors of NpyWriter and the file system.
absl::Status WriteMatrix(const std::filesystem::path& path,
                         const at::Tensor& rows);

}  // namespace millrace
