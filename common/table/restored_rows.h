// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/table/row_source.h"

namespace millrace {

// Part of a table whose rows were distributed: row i of `values` is row
// positions[i] - offset of the table.
struct RowShare {
  std::shared_ptr<const RowSource> positions;  // one integer per row
  std::shared_ptr<const RowSource> values;
  int64_t offset = 0;
};

struct RestoreOptions {
  // The folder in which each reader sorts the rows. Its file there is unlinked
  // at once, so that nothing is left behind.
  std::filesystem::path scratch;
  uint64_t memory_bytes = uint64_t{1} << 30;  // per reader
};

// Restores the order of a table of `rows` rows from its shares (at least one).
// Messages call the table `name` and a row a `kind` ("node", "edge"). Each
// Open() reads all shares once and writes a scratch file of their size.
// INVALID_ARGUMENT: shares of different widths, positions and values of
// different lengths, a different total number of rows. From Open(): a position
// that is out of range or occurs twice; the message names the position.
absl::StatusOr<std::shared_ptr<const RowSource>> RestoreRows(
    std::string name, std::string kind, std::vector<RowShare> shares,
    int64_t rows, const RestoreOptions& options);

}  // namespace millrace
