// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/parameters.h"
#include "common/torchfile/pickle_value.h"

namespace millrace {

// Whether files can have tensors of this type for CopyTensors.
bool IsReadFromFiles(at::ScalarType type);

// The tensors of a dictionary by their keys, copied. Those that share bytes in
// the file share the copies, which take no more memory than the file; strides
// are those of the file. `name`, of the file, begins messages.
// INVALID_ARGUMENT: something else than a dictionary, or than a tensor by name,
// or a name that occurs twice. RESOURCE_EXHAUSTED: no memory for the copies.
absl::StatusOr<std::vector<NamedTensor>> CopyTensors(const std::string& name,
                                                     const PickleValue& dict);

}  // namespace millrace
