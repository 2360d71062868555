// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/ingest/row_source.h"

namespace millrace {

// A share of a table whose rows were dealt out: row i of `values` is row
// positions[i] - offset of the table.
struct RowShare {
  std::shared_ptr<const RowSource> positions;  // one integer a row
  std::shared_ptr<const RowSource> values;
  int64_t offset = 0;
};

struct RestoreOptions {
  // Where each reader puts the rows while it sorts them: in a file that has
  // no name any more, so nothing stays behind.
  std::filesystem::path scratch;
  uint64_t memory_bytes = uint64_t{1} << 30;  // of one reader
};

// The table of `rows` rows that the shares (one at least) make up, in its own
// order. `name` names it in messages, `kind` a row ("node", "edge"). Each
// Open() reads all shares once and writes a scratch file of their size.
// INVALID_ARGUMENT, now: shares of different widths, positions and values of
// different lengths, another number of rows in all; when it is opened: a
// position that is out of range or stands twice (names the place).
absl::StatusOr<std::shared_ptr<const RowSource>> RestoreRows(
    std::string name, std::string kind, std::vector<RowShare> shares,
    int64_t rows, const RestoreOptions& options);

}  // namespace millrace
