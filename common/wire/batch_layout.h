// SPDX-License-Identifier: Apache-2.0
// How a batch is laid out in the byte string of a Sample stream.
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

// The rows that a stream carries: per node type, the local ids of nodes; per
// relation, the positions of edges. All are ascending.
struct SentRows {
  // Nodes that the home owns, for original ids and degrees.
  std::vector<std::vector<uint32_t>> home;
  // Nodes of `home` that the client does not cache, for features.
  std::vector<std::vector<uint32_t>> feature;
  // Nodes of `home` whose labels are wanted: all, or only the seeds.
  std::vector<std::vector<uint32_t>> label;
  // Edges whose destination the home owns, for edge features.
  std::vector<std::vector<uint32_t>> edge;

  // The rows of an array for which is_column() is true.
  const std::vector<uint32_t>& Of(const BatchArray& column, int index) const;
};

// Computes the rows from the ids of a batch. `cached_rows` has, per node type,
// the number of rows at the start of the home's range that the client caches;
// types beyond its end have none. Server and client both call this, so only the
// numbers of rows cross the wire.
SentRows SelectRows(const Batch& batch, const Manifest& manifest,
                    const Columns& columns, int home,
                    std::span<const uint64_t> cached_rows);

// One array of a Sample stream, without its first dimension.
struct ArraySlot {
  ArrayKind kind = ArrayKind::kUnknown;
  int index = 0;
  ColumnSpec row;  // dtype, and shape of one row
};

// The arrays of a Sample stream, in order.
std::vector<ArraySlot> ComputeSlots(const StreamContent& content);

// The layout of a batch whose topology is complete, without `partition`.
StreamLayout LayoutBatch(const Batch& batch, const StreamContent& content,
                         const SentRows& rows);

}  // namespace millrace
