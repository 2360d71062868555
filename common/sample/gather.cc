// SPDX-License-Identifier: Apache-2.0
#include "common/sample/gather.h"

#include <cstring>
#include <optional>
#include <string>

#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/base/with_ids.h"
#include "common/graph/damaged_file.h"
#include "common/sample/list_range.h"

namespace millrace {
namespace {

// The stored matrix of a column in one partition.
const Array& StoredColumn(const Partition& partition, TypeIndex type,
                          NodeColumn column) {
  const NodeColumns& nodes = partition.nodes[type];
  switch (column) {
    case NodeColumn::kLabel:
      return nodes.label;
    case NodeColumn::kTime:
      return nodes.time;
    default:
      return nodes.feature;
  }
}

absl::Status NotMapped(int part) {
  return absl::FailedPreconditionError(
      StrCat("partition ", part, " is not mapped in this process"));
}

absl::Status CheckRow(const Store& store, TypeIndex type, uint64_t id) {
  const uint64_t count = store.book(type).node_count();
  if (id < count) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("id ", id, " of node type ", store.schema().node_types[type].name,
             " is out of range; the type has ", count, " nodes"));
}

// Calls copy(partition, row, position), which may fail, for each of the ids,
// and address(partition, row) for those a few positions ahead, to prefetch the
// row.
template <typename AddressFn, typename CopyFn>
absl::Status ForEachRow(const Store& store, TypeIndex type,
                        std::span<const uint64_t> ids, AddressFn address,
                        CopyFn copy) {
  constexpr size_t kAhead = 6;
  const PartitionBook& book = store.book(type);
  for (size_t i = 0; i < ids.size(); ++i) {
    MILLRACE_RETURN_IF_ERROR(CheckRow(store, type, ids[i]));
    const int part = book.Owner(ids[i]);
    const Partition* partition = store.partition(part);
    if (partition == nullptr) return NotMapped(part);
    if (i + kAhead < ids.size() && ids[i + kAhead] < book.node_count()) {
      const uint64_t next = ids[i + kAhead];
      const int next_part = book.Owner(next);
      if (const Partition* p = store.partition(next_part)) {
        address(*p, next - book.begin(next_part));
      }
    }
    MILLRACE_RETURN_IF_ERROR(copy(*partition, ids[i] - book.begin(part), i));
  }
  return absl::OkStatus();
}

absl::Status GatherStored(const Store& store, TypeIndex type, NodeColumn column,
                          std::span<const uint64_t> ids, std::byte* out) {
  const size_t row_bytes = ColumnOf(store.schema(), type, column).row_bytes();
  const auto prefetch = [&](const Partition& partition, uint64_t row) {
    const std::byte* data =
        StoredColumn(partition, type, column).data() + row * row_bytes;
    for (size_t line = 0; line < row_bytes; line += 64) {
      __builtin_prefetch(data + line);
    }
  };
  return ForEachRow(store, type, ids, prefetch,
                    [&](const Partition& partition, uint64_t row, size_t i) {
                      std::memcpy(out + i * row_bytes,
                                  StoredColumn(partition, type, column).data() +
                                      row * row_bytes,
                                  row_bytes);
                      return absl::OkStatus();
                    });
}

absl::Status GatherOriginalIds(const Store& store, TypeIndex type,
                               std::span<const uint64_t> ids, std::byte* out) {
  auto* values = reinterpret_cast<int64_t*>(out);
  return ForEachRow(
      store, type, ids, [](const Partition&, uint64_t) {},
      [&](const Partition& partition, uint64_t row, size_t i) {
        values[i] = partition.nodes[type].original_id.IntegerAt(
            static_cast<int64_t>(row));
        return absl::OkStatus();
      });
}

absl::Status GatherDegrees(const Store& store, TypeIndex type,
                           Direction direction, std::span<const uint64_t> ids,
                           std::byte* out) {
  auto* values = reinterpret_cast<uint32_t*>(out);
  const std::vector<Relation>& relations = store.schema().relations;
  return ForEachRow(
      store, type, ids, [](const Partition&, uint64_t) {},
      [&](const Partition& partition, uint64_t row, size_t i) -> absl::Status {
        int64_t degree = 0;
        for (size_t r = 0; r < relations.size(); ++r) {
          const NeighborLists& lists = partition.edges[r].lists(direction);
          if (ListOwnerType(relations[r], direction) != type ||
              !lists.present()) {
            continue;
          }
          const std::optional<ListRange> range = RangeOfList(
              lists.indptr.As<int64_t>(), row, lists.indices.rows());
          if (!range.has_value()) {
            return DamagedFile(
                store,
                ListPath(store.book(type).Owner(ids[i]),
                         store.schema().RelationName(static_cast<int>(r)),
                         direction, "indptr"),
                StrCat("is damaged at row ", row));
          }
          degree += range->degree;
        }
        values[i] = static_cast<uint32_t>(degree);
        return absl::OkStatus();
      });
}

}  // namespace

ColumnSpec ColumnOf(const Schema& schema, TypeIndex type, NodeColumn column) {
  switch (column) {
    case NodeColumn::kFeature:
      return schema.node_types[type].feature;
    case NodeColumn::kLabel:
      return schema.node_types[type].label;
    case NodeColumn::kOriginalId:
      return {DType::kInt64, {}};
    case NodeColumn::kTime:
      if (!schema.node_types[type].has_time) return {};
      return {DType::kInt64, {}};
    case NodeColumn::kInDegree:
    case NodeColumn::kOutDegree:
      return {DType::kUint32, {}};
  }
  return {};
}

std::string_view ColumnName(NodeColumn column) {
  switch (column) {
    case NodeColumn::kFeature:
      return "features";
    case NodeColumn::kLabel:
      return "labels";
    case NodeColumn::kOriginalId:
      return "original ids";
    case NodeColumn::kTime:
      return "times";
    case NodeColumn::kInDegree:
      return "in-degrees";
    case NodeColumn::kOutDegree:
      return "out-degrees";
  }
  return "such column";
}

ColumnSpec WireFeature(const Schema& schema, TypeIndex type, DType cast) {
  ColumnSpec feature = schema.node_types[type].feature;
  if (feature.present() && cast != DType::kNone) feature.dtype = cast;
  return feature;
}

absl::Status GatherRows(const Store& store, TypeIndex type, NodeColumn column,
                        std::span<const uint64_t> ids, std::byte* out) {
  switch (column) {
    case NodeColumn::kFeature:
    case NodeColumn::kLabel:
    case NodeColumn::kTime:
      if (!ColumnOf(store.schema(), type, column).present()) {
        return absl::FailedPreconditionError(
            StrCat("node type ", store.schema().node_types[type].name,
                   " has no ", ColumnName(column)));
      }
      return GatherStored(store, type, column, ids, out);
    case NodeColumn::kOriginalId:
      return GatherOriginalIds(store, type, ids, out);
    case NodeColumn::kInDegree:
      return GatherDegrees(store, type, Direction::kIn, ids, out);
    case NodeColumn::kOutDegree:
      return GatherDegrees(store, type, Direction::kOut, ids, out);
  }
  return absl::InvalidArgumentError(
      StrCat("no such column: ", static_cast<int>(column)));
}

std::vector<uint32_t> FeatureOwners(const Batch& batch,
                                    const Relation& relation,
                                    const EdgeBlock& block,
                                    const PartitionBook& destinations) {
  std::vector<uint32_t> owners(static_cast<size_t>(block.edge_count()), 0);
  if (destinations.partition_count() == 1) return owners;
  const auto fill = [&](std::span<const uint32_t> nodes) {
    WithIds(batch.nodes[relation.dst].id, [&](const auto& ids) {
      for (size_t e = 0; e < owners.size(); ++e) {
        owners[e] = static_cast<uint32_t>(destinations.Owner(ids[nodes[e]]));
      }
    });
  };
  if (batch.direction == Direction::kOut) {
    fill(block.neighbor.As<uint32_t>());
  } else {
    fill(PlacesOfEdges(batch, relation, block).owner);
  }
  return owners;
}

absl::Status GatherEdgeRows(const Store& store, RelationIndex relation,
                            int part, std::span<const uint64_t> rows,
                            std::byte* out) {
  const Partition* partition = store.partition(part);
  if (partition == nullptr) return NotMapped(part);
  const Array& feature = partition->edges[relation].feature;
  const std::string name = store.schema().RelationName(relation);
  if (!feature.present()) {
    return absl::FailedPreconditionError(
        StrCat("the edges of ", name, " have no features"));
  }
  const size_t row_bytes = feature.row_bytes();
  for (const uint64_t row : rows) {
    if (row >= static_cast<uint64_t>(feature.rows())) {
      return DamagedFile(
          store, EdgeFeaturePath(part, name),
          StrCat("has ", feature.rows(), " rows, but row ", row, " is needed"));
    }
    std::memcpy(out, feature.data() + row * row_bytes, row_bytes);
    out += row_bytes;
  }
  return absl::OkStatus();
}

absl::Status GatherEdgeRows(const Store& store, RelationIndex relation,
                            std::span<const uint32_t> parts,
                            std::span<const uint64_t> rows, std::byte* out) {
  const size_t row_bytes =
      store.schema().relations[relation].feature.row_bytes();
  // Runs of rows of one partition are gathered together.
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin + 1;
    while (end < rows.size() && parts[end] == parts[begin]) ++end;
    MILLRACE_RETURN_IF_ERROR(GatherEdgeRows(
        store, relation, static_cast<int>(parts[begin]),
        rows.subspan(begin, end - begin), out + begin * row_bytes));
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace millrace
