// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/parameters.h"

namespace millrace {

// The tensors of a model by name, copied from a file that torch.save wrote: a
// state_dict, or a checkpoint of ours. Nothing in it is executed.
// NOT_FOUND: no such file. INVALID_ARGUMENT: something else than tensors by
// name. DATA_LOSS: a damaged file. All name the file.
absl::StatusOr<std::vector<NamedTensor>> ReadWeights(
    const std::filesystem::path& path);

}  // namespace millrace
