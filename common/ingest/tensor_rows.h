// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/ingest/pickle/stored_tensor.h"
#include "common/ingest/row_source.h"

namespace millrace {

// A tensor of one or two dimensions, one row per index of the first; `name`
// is for messages. Gives back the pages of the map behind the reading
// position. INVALID_ARGUMENT: another shape, no columns.
absl::StatusOr<std::shared_ptr<const RowSource>> TensorRows(
    std::string name, StoredTensor tensor);

}  // namespace millrace
