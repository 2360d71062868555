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

// The local ids, ascending, whose rows a stream carries: per node type; and
// the edges.
struct SentRows {
  // Nodes that the home owns: original ids and degrees.
  std::vector<std::vector<uint32_t>> home;
  // Those of `home` beyond the client's cached prefix: features.
  std::vector<std::vector<uint32_t>> feature;
  // Those of `home` that labels are asked for: all, or seeds (of their type).
  std::vector<std::vector<uint32_t>> label;
  // Per relation the places of the edges whose destination the home owns:
  // edge features.
  std::vector<std::vector<uint32_t>> edge;
};

// What decides which arrays a Sample stream has. All must outlive it.
struct StreamContent {
  const Manifest& manifest;
  const ResolvedJob& job;
  const Columns& columns;
  // The client knows the seeds, all columns of them: they are not sent.
  bool explicit_seeds = false;
  // Explicit edge seeds that come with negatives.
  bool given_negatives = false;
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
// small columns, then features.
std::vector<ArraySlot> ArraysOf(const StreamContent& content);

// The layout of a batch whose topology is done.
StreamLayout LayoutBatch(const Batch& batch, const StreamContent& content,
                         const SentRows& rows);

// The array of a batch that a stream's array of topology is, sent or
// received. Null for kHopOffsets: NodeBlock has them as a vector.
const Array* TopologyArray(const Batch& batch, ArrayKind kind, int index);
Array* TopologyArray(Batch& batch, ArrayKind kind, int index);

// Whether an array has rows of nodes (features, labels, original ids,
// degrees) or of edges (kEdgeFeature), and which rows, and of which column of
// nodes then. `RowsOf` is for those only, `RowColumn` for those of nodes.
bool IsRowKind(ArrayKind kind);
NodeColumn RowColumn(ArrayKind kind, Direction direction);
const std::vector<uint32_t>& RowsOf(const SentRows& rows, ArrayKind kind,
                                    int index);

// Type of features on the wire: as stored, or cast.
ColumnSpec WireFeature(const Schema& schema, TypeIndex type, DType cast);

}  // namespace millrace
