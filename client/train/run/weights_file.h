// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/parameters.h"

namespace millrace {

// Copies the tensors of a model, by name, from a file that torch.save wrote: a
// state_dict, or a checkpoint of ours. Executes nothing in it.
// NOT_FOUND: no such file. INVALID_ARGUMENT: it does not contain tensors by
// name. DATA_LOSS: it is damaged. All name the file.
absl::StatusOr<std::vector<NamedTensor>> ReadWeights(
    const std::filesystem::path& path);

}  // namespace millrace
