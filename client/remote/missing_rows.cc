// SPDX-License-Identifier: Apache-2.0
#include "client/remote/missing_rows.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include "common/base/with_ids.h"
#include "common/graph/owner_groups.h"
#include "common/sample/batch_arrays.h"
#include "common/sample/gather.h"

namespace millrace {
namespace {

// A column that a batch has of a node type.
struct PresentColumn {
  NodeColumn column;
  uint32_t row_count;  // of the type's first nodes
  Array target;
};

// Features come first, since they are the most bytes.
std::vector<PresentColumn> PresentColumns(const Columns& columns,
                                          const Batch& batch, TypeIndex type) {
  std::vector<PresentColumn> present;
  for (const ArrayGroup group :
       {ArrayGroup::kNodeFeatures, ArrayGroup::kNodeColumns}) {
    for (const BatchArray& array : ArraysOf(group)) {
      Array target = array.Get(batch, type);
      if (!target.present()) continue;
      present.push_back({array.column(batch.direction),
                         ColumnRowCount(array, columns, batch.nodes[type]),
                         std::move(target)});
    }
  }
  return present;
}

// Makes `ask` name nobody for the nodes whose features are in the cache.
void LeaveOutCached(const CachedFeatures& cache, TypeIndex type,
                    const Array& ids, std::vector<int>& ask) {
  WithIds(ids, [&](const auto& all) {
    for (size_t i = 0; i < ask.size(); ++i) {
      if (ask[i] != kNoOwner && cache.Holds(type, ask[i], all[i])) {
        ask[i] = kNoOwner;
      }
    }
  });
}

// Returns requests for the rows of a column, whose owners are `owners`, other
// than the home's.
std::vector<RowRequest> MissingColumnRows(const RowOrigins& origins,
                                          const Array& ids, TypeIndex type,
                                          const PresentColumn& column,
                                          std::span<const int> owners) {
  RowRequest prototype;
  prototype.type = type;
  prototype.column = column.column;
  prototype.target = column.target;
  std::vector<int> ask(owners.begin(), owners.end());
  std::replace(ask.begin(), ask.end(), origins.home, kNoOwner);
  if (column.column == NodeColumn::kFeature) {
    prototype.feature_dtype = origins.columns.feature_dtype;
    if (origins.cache != nullptr) {
      LeaveOutCached(*origins.cache, type, ids, ask);
    }
  }
  return SplitByOwner(ask, origins.manifest.books[type].partition_count(), ids,
                      prototype);
}

}  // namespace

std::vector<RowRequest> MissingNodeRows(const RowOrigins& origins,
                                        const Batch& batch, TypeIndex type) {
  const PartitionBook& book = origins.manifest.books[type];
  if (book.partition_count() == 1) return {};
  const std::vector<PresentColumn> columns =
      PresentColumns(origins.columns, batch, type);
  uint32_t longest = 0;
  for (const PresentColumn& column : columns) {
    longest = std::max(longest, column.row_count);
  }
  const Array& ids = batch.nodes[type].id;
  const std::vector<int> owners = OwnersOf(book, ids, longest);
  std::vector<RowRequest> all;
  for (const PresentColumn& column : columns) {
    std::vector<RowRequest> some = MissingColumnRows(
        origins, ids, type, column, std::span(owners).first(column.row_count));
    std::move(some.begin(), some.end(), std::back_inserter(all));
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
