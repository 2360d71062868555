// SPDX-License-Identifier: Apache-2.0
// How a batch lies in the byte string of a Sample stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/batch_source.h"
#include "common/sample/job.h"
#include "common/wire/stream_layout.h"

namespace millrace {

// The local ids, ascending, whose rows a stream carries: per node type.
struct SentRows {
  // Nodes that the home owns: original ids and degrees.
  std::vector<std::vector<uint32_t>> home;
  // Those of `home` beyond the client's cached prefix: features.
  std::vector<std::vector<uint32_t>> feature;
  // Those of `home` that labels are asked for: all, or seeds (of their type).
  std::vector<std::vector<uint32_t>> label;
};

// Computes them from ids. `cached_rows`: per node type, the length of the
// client's cached prefix of the home's range; empty: none. Server and client
// both call it, so nothing about rows crosses the wire but their number.
SentRows SelectRows(const Batch& batch, const Manifest& manifest,
                    const Columns& columns, int home,
                    std::span<const uint64_t> cached_rows);

// One array of a Sample stream, its first dimension left open.
struct ArraySlot {
  ArrayKind kind = ArrayKind::kUnknown;
  int index = 0;
  ColumnSpec element;  // dtype, and shape without the first dimension
};

// The arrays of a Sample stream in their order. Topology and ids first, then
// small columns, then features. `explicit_seeds`: the client knows the
// original ids of the seeds, so they are not sent.
std::vector<ArraySlot> ArraysOf(const Manifest& manifest,
                                const Columns& columns, bool disjoint,
                                bool explicit_seeds);

// The layout of a batch whose topology is done.
StreamLayout LayoutBatch(const Batch& batch, const Manifest& manifest,
                         const Columns& columns, const SentRows& rows,
                         bool explicit_seeds);

// The array of a batch that a stream's array without rows of nodes is, sent or
// received. Null for kHopOffsets: NodeBlock has them as a vector.
const Array* TopologyArray(const Batch& batch, ArrayKind kind, int index);
Array* TopologyArray(Batch& batch, ArrayKind kind, int index);

// Whether an array has rows of nodes (features, labels, original ids,
// degrees), and which column and nodes then. `RowColumn` and `RowsOf` are for
// those only.
bool IsRowKind(ArrayKind kind);
NodeColumn RowColumn(ArrayKind kind, Direction direction);
const std::vector<uint32_t>& RowsOf(const SentRows& rows, ArrayKind kind,
                                    TypeIndex type);

// Type of features on the wire: as stored, or cast.
ColumnSpec WireFeature(const Schema& schema, TypeIndex type, DType cast);

}  // namespace millrace
