// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/schema.h"
#include "common/graph/store_writer.h"
#include "common/ingest/import_options.h"
#include "common/table/row_source.h"

namespace millrace {

// Streams a matrix of `rows` rows, normalised, into the float32 file
// `relative_path` of `store`, and returns its column. Reads the source once.
// INVALID_ARGUMENT: a different number of rows, or a value that is not finite.
absl::StatusOr<ColumnSpec> ImportFeatures(const RowSource& source, int64_t rows,
                                          Normalization normalization,
                                          const std::string& relative_path,
                                          StoreWriter& store);

// INVALID_ARGUMENT: `rows` is not `expected`. The message names the source.
absl::Status CheckRowCount(const RowSource& source, int64_t rows,
                           int64_t expected);

}  // namespace millrace
