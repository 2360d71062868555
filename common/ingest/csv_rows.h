// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "common/ingest/row_source.h"

namespace millrace {

// A CSV file (plain or gzip) of numbers without a header line; blanks around
// a number do not matter. With `width` 0 the first line says how many there
// are in a row.
// NOT_FOUND: no such file. INVALID_ARGUMENT: empty, with `width` 0.
absl::StatusOr<std::unique_ptr<RowSource>> OpenCsvRows(
    const std::filesystem::path& path, int64_t width = 0);

}  // namespace millrace
