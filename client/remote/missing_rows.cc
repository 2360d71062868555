// SPDX-License-Identifier: Apache-2.0
#include "client/remote/missing_rows.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "common/graph/owner_groups.h"
#include "common/sample/batch_arrays.h"
#include "common/sample/gather.h"

namespace millrace {
namespace {

// Returns requests for the first `row_count` rows of a column. There are none
// if the batch does not have it, that is if `target` is absent.
std::vector<RowRequest> MissingColumnRows(const RowOrigins& origins,
                                          const Array& ids, TypeIndex type,
                                          NodeColumn column, uint32_t row_count,
                                          const Array& target) {
  const PartitionBook& book = origins.manifest.books[type];
  if (!target.present() || book.partition_count() == 1) return {};
  RowRequest prototype;
  prototype.type = type;
  prototype.column = column;
  prototype.target = target;
  const CachedFeatures* cache = nullptr;
  if (column == NodeColumn::kFeature) {
    prototype.feature_dtype = origins.columns.feature_dtype;
    cache = origins.cache;
  }
  std::vector<int> ask = OwnersOf(book, ids, row_count);
  for (uint32_t i = 0; i < row_count; ++i) {
    const auto id = static_cast<uint64_t>(ids.IntegerAt(i));
    const bool held = cache != nullptr && cache->Holds(type, ask[i], id);
    if (ask[i] == origins.home || held) ask[i] = kNoOwner;
  }
  return SplitByOwner(ask, book.partition_count(), ids, prototype);
}

}  // namespace

std::vector<RowRequest> MissingNodeRows(const RowOrigins& origins,
                                        const Batch& batch, TypeIndex type) {
  const NodeBlock& block = batch.nodes[type];
  std::vector<RowRequest> all;
  // Features first, since they are the most bytes.
  for (const ArrayGroup group :
       {ArrayGroup::kNodeFeatures, ArrayGroup::kNodeColumns}) {
    for (const BatchArray& array : ArraysOf(group)) {
      std::vector<RowRequest> some = MissingColumnRows(
          origins, block.id, type, array.column(batch.direction),
          ColumnRowCount(array, origins.columns, block),
          array.Get(batch, type));
      std::move(some.begin(), some.end(), std::back_inserter(all));
    }
  }
  return all;
}

std::vector<RowRequest> MissingEdgeRows(const RowOrigins& origins,
                                        const Batch& batch,
                                        RelationIndex relation) {
  const EdgeBlock& block = batch.edges[relation];
  const Relation& edges = origins.manifest.schema.relations[relation];
  const PartitionBook& book = origins.manifest.books[edges.dst];
  if (!block.feature.present() || book.partition_count() == 1) return {};
  RowRequest prototype;
  prototype.edge_relation = relation;
  prototype.target = block.feature;
  const std::vector<uint32_t> all = FeatureOwners(batch, edges, block, book);
  std::vector<int> ask(all.begin(), all.end());
  std::replace(ask.begin(), ask.end(), origins.home, kNoOwner);
  return SplitByOwner(ask, book.partition_count(), block.feature_row,
                      prototype);
}

}  // namespace millrace
