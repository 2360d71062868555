// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/nn/parameters.h"
#include "common/torchfile/pickle_value.h"

namespace millrace {

// Whether CopyTensors can read tensors of this type.
bool IsReadFromFiles(at::ScalarType type);

// Copies the tensors of a dictionary, named by their keys. Those that share
// bytes in the file share the copies, which take no more memory than the file.
// Strides are those of the file. Messages begin with `name`, the file's.
// INVALID_ARGUMENT: `dict` is not a dictionary of tensors by name, or has a
// name twice. RESOURCE_EXHAUSTED: the copies do not fit in memory.
absl::StatusOr<std::vector<NamedTensor>> CopyTensors(const std::string& name,
                                                     const PickleValue& dict);

}  // namespace millrace
