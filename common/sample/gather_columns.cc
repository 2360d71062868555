// SPDX-License-Identifier: Apache-2.0
#include "common/sample/gather_columns.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/host_memory.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch_arrays.h"
#include "common/sample/gather.h"

namespace millrace {
namespace {

constexpr char kSmallerBatch[] = "use a smaller batch size or fanouts";

// Widens 32-bit ids; `ids` must stay alive while the span is used.
std::span<const uint64_t> WideIds(const Array& ids,
                                  std::vector<uint64_t>& buffer) {
  if (ids.dtype() == DType::kUint64) return ids.As<uint64_t>();
  const std::span<const uint32_t> narrow = ids.As<uint32_t>();
  buffer.assign(narrow.begin(), narrow.end());
  return buffer;
}

// Returns uninitialised memory of the host for `count` rows.
Array AllocateRows(const ColumnSpec& spec, size_t count, ArrayMemory* memory) {
  return Array::Allocate(spec.dtype, spec.ShapeOf(static_cast<int64_t>(count)),
                         memory);
}

// The partition that has the features of each edge; `buffer` must stay alive
// while the span is used.
std::span<const uint32_t> FeatureParts(const Store& store,
                                       const Relation& relation,
                                       const Batch& batch,
                                       const EdgeBlock& block,
                                       std::vector<uint32_t>& buffer) {
  if (!block.indptr.on_host()) return block.feature_parts;
  buffer = FeatureOwners(batch, relation, block, store.book(relation.dst));
  return buffer;
}

// Gathers the features of a relation's edges from all their owners.
absl::Status GatherEdgeFeatures(const Store& store, RelationIndex index,
                                const Batch& batch, const ColumnPlaces& places,
                                EdgeBlock& block) {
  const Relation& relation = store.schema().relations[index];
  if (!relation.feature.present()) return absl::OkStatus();
  const auto count = static_cast<size_t>(block.edge_count());
  MILLRACE_RETURN_IF_ERROR(
      CheckMemory(StrCat("a batch with features of ", count, " edges"),
                  count * relation.feature.row_bytes(), kSmallerBatch));
  std::vector<uint32_t> buffer;
  MILLRACE_ASSIGN_OR_RETURN(
      block.feature,
      GatherEdgeArray(store, index,
                      FeatureParts(store, relation, batch, block, buffer),
                      block.feature_row.As<uint64_t>(), places));
  return absl::OkStatus();
}

// The columns of the nodes of one type, from all their owners.
absl::Status GatherNodeColumns(const Store& store, const StreamContent& content,
                               TypeIndex type, const ColumnPlaces& places,
                               Batch& batch) {
  const NodeBlock& block = batch.nodes[type];
  std::vector<uint64_t> buffer;
  const std::span<const uint64_t> all = WideIds(block.id, buffer);
  for (const BatchArray& array : BatchArrays()) {
    if (array.column == nullptr || !array.row(content, type).present()) {
      continue;
    }
    if (array.length == ArrayLength::kLabelledNodes &&
        !WantsLabels(content.columns, LabelsSeeds(content.job, type))) {
      continue;
    }
    const NodeColumn column = array.column(batch.direction);
    const ColumnSpec spec = ColumnOf(store.schema(), type, column);
    if (!spec.present()) continue;
    const std::span<const uint64_t> ids =
        all.first(ColumnRowCount(array, content.columns, block));
    MILLRACE_RETURN_IF_ERROR(
        CheckMemory(StrCat("a batch with columns of ", ids.size(), " nodes"),
                    ids.size() * spec.row_bytes(), kSmallerBatch));
    MILLRACE_ASSIGN_OR_RETURN(Array rows,
                              GatherArray(store, type, column, ids, places));
    array.Set(batch, type, std::move(rows));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Array> GatherArray(const Store& store, TypeIndex type,
                                  NodeColumn column,
                                  std::span<const uint64_t> ids,
                                  const ColumnPlaces& places) {
  const ColumnSpec spec = ColumnOf(store.schema(), type, column);
  // GatherRows() says what is wrong with a column that does not exist.
  if (!spec.present()) return GatherRows(store, type, column, ids, nullptr);
  if (column == NodeColumn::kFeature && places.features != nullptr) {
    return places.features->GatherNodes(type, ids, places.memory);
  }
  Array rows = AllocateRows(spec, ids.size(), places.memory);
  MILLRACE_RETURN_IF_ERROR(
      GatherRows(store, type, column, ids, rows.mutable_data()));
  return rows;
}

absl::StatusOr<Array> GatherEdgeArray(const Store& store,
                                      RelationIndex relation,
                                      std::span<const uint32_t> parts,
                                      std::span<const uint64_t> rows,
                                      const ColumnPlaces& places) {
  const ColumnSpec& spec = store.schema().relations[relation].feature;
  if (!spec.present()) {
    return GatherEdgeRows(store, relation, parts, rows, nullptr);
  }
  if (places.features != nullptr) {
    return places.features->GatherEdges(relation, parts, rows, places.memory);
  }
  Array gathered = AllocateRows(spec, rows.size(), places.memory);
  MILLRACE_RETURN_IF_ERROR(
      GatherEdgeRows(store, relation, parts, rows, gathered.mutable_data()));
  return gathered;
}

absl::Status GatherColumns(const Store& store, const ResolvedJob& job,
                           const Columns& columns, Batch& batch,
                           const ColumnPlaces& places) {
  const StreamContent content = {store.manifest(), job, columns};
  for (size_t t = 0; t < batch.nodes.size(); ++t) {
    MILLRACE_RETURN_IF_ERROR(GatherNodeColumns(
        store, content, static_cast<TypeIndex>(t), places, batch));
  }
  for (size_t r = 0; columns.edge_features && r < batch.edges.size(); ++r) {
    MILLRACE_RETURN_IF_ERROR(GatherEdgeFeatures(
        store, static_cast<RelationIndex>(r), batch, places, batch.edges[r]));
  }
  return absl::OkStatus();
}

}  // namespace millrace
