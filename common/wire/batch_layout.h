// SPDX-License-Identifier: Apache-2.0
// How a batch lies in the byte string of a Sample stream.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/graph/manifest.h"
#include "common/sample/batch.h"
#include "common/sample/batch_arrays.h"
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

  // Those of an array that is_column().
  const std::vector<uint32_t>& Of(const BatchArray& column, int index) const;
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
  ColumnSpec row;
};

// The arrays of a Sample stream in their order.
std::vector<ArraySlot> SlotsOf(const StreamContent& content);

// The layout of a batch whose topology is done.
StreamLayout LayoutBatch(const Batch& batch, const StreamContent& content,
                         const SentRows& rows);

}  // namespace millrace
