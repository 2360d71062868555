// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "absl/status/statusor.h"
#include "common/table/row_source.h"

namespace millrace {

// Opens a CSV file (plain or gzip) of numbers without a header line; blanks
// around numbers are ignored. If `width` is 0, the first line determines the
// number of columns.
// NOT_FOUND: no such file. INVALID_ARGUMENT: the file is empty and `width` is
// 0.
absl::StatusOr<std::unique_ptr<RowSource>> OpenCsvRows(
    const std::filesystem::path& path, int64_t width = 0);

}  // namespace millrace
