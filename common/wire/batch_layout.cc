// SPDX-License-Identifier: Apache-2.0
#include "common/wire/batch_layout.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/with_ids.h"
#include "common/sample/gather.h"

namespace millrace {
namespace {

template <typename Id>
std::vector<uint32_t> RowsInRange(std::span<const Id> ids, uint64_t begin,
                                  uint64_t end) {
  std::vector<uint32_t> rows(ids.size());
  size_t count = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    rows[count] = static_cast<uint32_t>(i);
    count += static_cast<uint64_t>(ids[i]) - begin < end - begin ? 1 : 0;
  }
  rows.resize(count);
  return rows;
}

std::vector<uint32_t> SelectIds(const Array& ids, uint64_t begin,
                                uint64_t end) {
  return WithIds(ids,
                 [&](const auto& all) { return RowsInRange(all, begin, end); });
}

uint64_t Cached(std::span<const uint64_t> cached_rows, size_t type,
                uint64_t owned) {
  return type < cached_rows.size() ? std::min(cached_rows[type], owned) : 0;
}

std::vector<uint32_t> EdgesOfHome(const Batch& batch, const Manifest& manifest,
                                  RelationIndex index, int home) {
  const Relation& relation = manifest.schema.relations[index];
  const std::vector<uint32_t> owners = FeatureOwners(
      batch, relation, batch.edges[index], manifest.books[relation.dst]);
  std::vector<uint32_t> edges;
  for (size_t e = 0; e < owners.size(); ++e) {
    if (owners[e] == static_cast<uint32_t>(home)) {
      edges.push_back(static_cast<uint32_t>(e));
    }
  }
  return edges;
}

}  // namespace

SentRows SelectRows(const Batch& batch, const Manifest& manifest,
                    const Columns& columns, int home,
                    std::span<const uint64_t> cached_rows) {
  const size_t types = batch.nodes.size();
  SentRows rows{std::vector<std::vector<uint32_t>>(types),
                std::vector<std::vector<uint32_t>>(types),
                std::vector<std::vector<uint32_t>>(types),
                std::vector<std::vector<uint32_t>>(batch.edges.size())};
  for (size_t t = 0; t < types; ++t) {
    const NodeBlock& block = batch.nodes[t];
    const uint64_t begin = manifest.books[t].begin(home);
    const uint64_t end = manifest.books[t].end(home);
    rows.home[t] = SelectIds(block.id, begin, end);
    const uint64_t cached = Cached(cached_rows, t, end - begin);
    if (columns.features && manifest.schema.node_types[t].feature.present()) {
      rows.feature[t] =
          cached == 0 ? rows.home[t] : SelectIds(block.id, begin + cached, end);
    }
    if (WantsLabels(columns, LabelsSeeds(batch.seed_kind, batch.seed_type,
                                         static_cast<TypeIndex>(t))) &&
        manifest.schema.node_types[t].label.present()) {
      const auto last =
          std::lower_bound(rows.home[t].begin(), rows.home[t].end(),
                           LabelRowCount(columns, block));
      rows.label[t].assign(rows.home[t].begin(), last);
    }
  }
  for (size_t r = 0; columns.edge_features && r < rows.edge.size(); ++r) {
    if (manifest.schema.relations[r].feature.present()) {
      rows.edge[r] =
          EdgesOfHome(batch, manifest, static_cast<RelationIndex>(r), home);
    }
  }
  return rows;
}

const std::vector<uint32_t>& SentRows::Of(const BatchArray& column,
                                          int index) const {
  MILLRACE_CHECK(column.is_column());
  switch (column.length) {
    case ArrayLength::kOwnedEdges:
      return edge[index];
    case ArrayLength::kUncachedNodes:
      return feature[index];
    case ArrayLength::kLabelledNodes:
      return label[index];
    default:
      return home[index];
  }
}

std::vector<ArraySlot> ComputeSlots(const StreamContent& content) {
  const Schema& schema = content.manifest.schema;
  const std::span<const BatchArray> all = BatchArrays();
  std::vector<ArraySlot> slots;
  for (size_t begin = 0; begin < all.size();) {
    const std::span<const BatchArray> group = ArraysOf(all[begin].group);
    const int count = CountOf(all[begin].group, schema.node_types.size(),
                              schema.relations.size());
    for (int i = 0; i < count; ++i) {
      for (const BatchArray& array : group) {
        ColumnSpec row = array.row(content, i);
        if (row.present()) slots.push_back({array.kind, i, std::move(row)});
      }
    }
    begin += group.size();
  }
  return slots;
}

StreamLayout LayoutBatch(const Batch& batch, const StreamContent& content,
                         const SentRows& rows) {
  StreamLayout layout;
  layout.hops = batch.hops;
  layout.seed_type = batch.seed_type;
  for (const ArraySlot& slot : ComputeSlots(content)) {
    const BatchArray& array = Describe(slot.kind);
    const int64_t length =
        array.is_column()
            ? static_cast<int64_t>(rows.Of(array, slot.index).size())
            : array.Get(batch, slot.index).rows();
    layout.Append(slot.kind, slot.index, slot.row.dtype,
                  slot.row.ShapeOf(length));
  }
  return layout;
}

}  // namespace millrace
