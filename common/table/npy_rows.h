// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/table/row_source.h"

namespace millrace {

// Errors of the functions that read files, in messages that name the file:
// NOT_FOUND: no such file. INVALID_ARGUMENT: a damaged file, a file of another
// kind (the message says how to convert it), an unsuitable dtype or shape.
// Arrays may have any dtype and order that npy_tensor.h supports.

// Opens a .npy array of one or two dimensions, with a row for each index of the
// first. float16 and float64 become float32 when read as floats; bools are the
// integers 0 and 1.
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyRows(
    const std::filesystem::path& path);

// Opens an edge list of integers as rows (source, destination). Its shape is
// [2, E], or [E, 2] if the first dimension is not 2. Logs a warning for [2, 2].
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdges(
    const std::filesystem::path& path);

// Opens node ids, one per row: an array of integers, or a mask, which is a bool
// array with one element per node. If `node_count` is negative, the number of
// nodes is unknown, and a mask may have any length.
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyIds(
    const std::filesystem::path& path, int64_t node_count);

// Opens edges as seeds: pairs of nodes [n, 2], or edge ids, one per row: an
// array of integers, or a mask, as above.
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdgeSeeds(
    const std::filesystem::path& path, int64_t edge_count);

// Reads a whole array of integers (not bools) of one or two dimensions as int64
// in C order.
absl::StatusOr<Array> ReadNpyIntegers(const std::filesystem::path& path);

// The rows of an array of one or two dimensions in memory; messages call it
// `name`.
std::unique_ptr<RowSource> ArrayRows(std::string name, Array array);

}  // namespace millrace
