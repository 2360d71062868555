// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/array.h"
#include "common/ingest/row_source.h"

namespace millrace {

// All functions that read files name them in their errors: NOT_FOUND: no such
// file; INVALID_ARGUMENT: a damaged file, another kind of file (says how to
// convert it), a dtype or shape that does not fit. Arrays may have any dtype
// and order of npy_tensor.h.

// A .npy array of one or two dimensions, one row per index of the first.
// float16 and float64 become float32 when read as floats; bools are integers,
// 0 and 1.
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyRows(
    const std::filesystem::path& path);

// An edge list of integers as rows (source, destination): [2, E], or [E, 2]
// when the first dimension is not 2. Warns of [2, 2].
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdges(
    const std::filesystem::path& path);

// Node ids, one a row: an integer array of them, or a bool array with one
// element per node, true where the node belongs. `node_count` < 0: unknown,
// any length of a bool array fits.
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyIds(
    const std::filesystem::path& path, int64_t node_count);

// Edges as seeds: pairs of nodes [n, 2], or edge ids, one a row: an integer
// array of them, or a bool array with one element per edge.
absl::StatusOr<std::unique_ptr<RowSource>> OpenNpyEdgeSeeds(
    const std::filesystem::path& path, int64_t edge_count);

// All of an array of integers (not bools) of one or two dimensions, as int64
// in C order.
absl::StatusOr<Array> ReadNpyIntegers(const std::filesystem::path& path);

// An array of one or two dimensions in memory; `name` is for messages.
std::unique_ptr<RowSource> ArrayRows(std::string name, Array array);

}  // namespace millrace
