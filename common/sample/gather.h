// SPDX-License-Identifier: Apache-2.0
// Columns of nodes by id, from mapped partitions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/store.h"
#include "common/sample/batch.h"
#include "common/sample/batch_arrays.h"
#include "common/sample/batch_source.h"

namespace millrace {

// The dtype and row shape of `column`; absent if the graph does not have it.
ColumnSpec ColumnOf(const Schema& schema, TypeIndex type, NodeColumn column);

// "features", "labels", "original ids", ...
std::string_view ColumnName(NodeColumn column);

// The dtype and row shape of features on the wire, as stored or cast.
ColumnSpec WireFeature(const Schema& schema, TypeIndex type, DType cast);

// Whether a batch carries labels of a type: of the distinct seeds, or of all.
inline bool WantsLabels(const Columns& columns, bool is_seed_type) {
  return columns.labels == LabelRows::kAll ||
         (columns.labels == LabelRows::kSeeds && is_seed_type);
}
inline uint32_t LabelRowCount(const Columns& columns, const NodeBlock& block) {
  return columns.labels == LabelRows::kAll ? block.count()
                                           : block.hop_offsets[1];
}
// How many rows of a column of nodes a batch has, if it has the column.
inline uint32_t ColumnRowCount(const BatchArray& column, const Columns& columns,
                               const NodeBlock& block) {
  return column.length == ArrayLength::kLabelledNodes
             ? LabelRowCount(columns, block)
             : block.count();
}
inline NodeColumn DegreeColumn(Direction direction) {
  return direction == Direction::kIn ? NodeColumn::kInDegree
                                     : NodeColumn::kOutDegree;
}

// Copies the rows of `ids`, which must all be owned by mapped partitions, to
// `out`, contiguously and in order. `out` must have room for
// ids.size() * ColumnOf(...).row_bytes() bytes.
// INVALID_ARGUMENT: an id is out of range. FAILED_PRECONDITION: an owner is not
// mapped, or there is no such column (the message names the type).
absl::Status GatherRows(const Store& store, TypeIndex type, NodeColumn column,
                        std::span<const uint64_t> ids, std::byte* out);

// For each edge, the partition that owns its destination and therefore its
// features.
std::vector<uint32_t> FeatureOwners(const Batch& batch,
                                    const Relation& relation,
                                    const EdgeBlock& block,
                                    const PartitionBook& destinations);

// Copies rows of a partition's edge features to `out`, contiguously and in
// order.
// DATA_LOSS: a row is beyond the end of the file, which damaged lists can
// cause. FAILED_PRECONDITION: the partition is not mapped, or the edges have no
// features.
absl::Status GatherEdgeRows(const Store& store, RelationIndex relation,
                            int part, std::span<const uint64_t> rows,
                            std::byte* out);

// The same for rows of several partitions: row i is rows[i] of partition
// parts[i].
absl::Status GatherEdgeRows(const Store& store, RelationIndex relation,
                            std::span<const uint32_t> parts,
                            std::span<const uint64_t> rows, std::byte* out);

}  // namespace millrace
