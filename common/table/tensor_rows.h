// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/table/row_source.h"
#include "common/table/stored_tensor.h"

namespace millrace {

// The rows of a tensor of one or two dimensions, one for each index of the
// first. Messages call the tensor `name` and a row a `unit`. A pass keeps only
// a few pages of the mapping resident, whatever the order of the elements.
// INVALID_ARGUMENT: another shape, no columns, or too many.
absl::StatusOr<std::unique_ptr<RowSource>> TensorRows(std::string name,
                                                      StoredTensor tensor,
                                                      const char* unit = "row");

}  // namespace millrace
