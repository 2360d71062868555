// SPDX-License-Identifier: Apache-2.0
#include "common/sample/gather_columns.h"

#include <cstddef>
#include <memory>
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

// Returns uninitialised memory for `count` rows.
absl::StatusOr<Array> AllocateRows(const ColumnSpec& spec, size_t count,
                                   const ColumnPlaces& places) {
  std::vector<int64_t> shape = spec.ShapeOf(static_cast<int64_t>(count));
  if (places.features == nullptr) {
    return Array::Allocate(spec.dtype, std::move(shape), places.memory);
  }
  MILLRACE_ASSIGN_OR_RETURN(
      const std::shared_ptr<std::byte> block,
      places.features->Allocate(count * spec.row_bytes()));
  return Array::Borrow(spec.dtype, std::move(shape), block.get(), block);
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
  MILLRACE_ASSIGN_OR_RETURN(block.feature,
                            AllocateRows(relation.feature, count, places));
  const std::vector<uint32_t> owners =
      FeatureOwners(batch, relation, block, store.book(relation.dst));
  const std::span<const uint64_t> rows = block.feature_row.As<uint64_t>();
  std::byte* out = block.feature.mutable_data();
  return places.features == nullptr
             ? GatherEdgeRows(store, index, owners, rows, out)
             : places.features->GatherEdges(index, owners, rows, out);
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
  ColumnPlaces own = places;
  if (column != NodeColumn::kFeature) own.features = nullptr;
  MILLRACE_ASSIGN_OR_RETURN(Array rows, AllocateRows(spec, ids.size(), own));
  std::byte* out = rows.mutable_data();
  MILLRACE_RETURN_IF_ERROR(own.features == nullptr
                               ? GatherRows(store, type, column, ids, out)
                               : own.features->GatherNodes(type, ids, out));
  return rows;
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
