// SPDX-License-Identifier: Apache-2.0
// Tables that are made of other tables.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/table/row_source.h"

namespace millrace {

using RowSources = std::vector<std::shared_ptr<const RowSource>>;

// The rows of `sources`, one table after the other. There must be at least one
// source, and all must know their number of rows. INVALID_ARGUMENT: their
// widths differ.
absl::StatusOr<std::shared_ptr<const RowSource>> ConcatenateRows(
    std::string name, RowSources sources);

// The columns of `sources`, side by side. There must be at least one source,
// and all must know their number of rows. INVALID_ARGUMENT: their numbers of
// rows differ.
absl::StatusOr<std::shared_ptr<const RowSource>> JoinColumns(
    std::string name, RowSources sources);

}  // namespace millrace
