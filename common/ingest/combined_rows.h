// SPDX-License-Identifier: Apache-2.0
// Tables made of other tables.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/row_source.h"

namespace millrace {

using RowSources = std::vector<std::shared_ptr<const RowSource>>;

// The rows of `sources` one table after another. There must be one at least,
// and each knows its number of rows. INVALID_ARGUMENT: different widths.
absl::StatusOr<std::shared_ptr<const RowSource>> ConcatenateRows(
    std::string name, RowSources sources);

// The columns of `sources` side by side. There must be one at least, and each
// knows its number of rows. INVALID_ARGUMENT: different numbers of rows.
absl::StatusOr<std::shared_ptr<const RowSource>> JoinColumns(
    std::string name, RowSources sources);

}  // namespace millrace
