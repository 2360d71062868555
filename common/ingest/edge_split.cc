// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/edge_split.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/seeds/edge_directory.h"

namespace millrace {
namespace {

class EdgeSplitWriter {
 public:
  EdgeSplitWriter(const EdgeSplitColumns& split, const Schema& schema,
                  const std::vector<PartitionBook>& books, const IdOfFn& id_of,
                  const WriteArrayFn& write)
      : split_(split),
        schema_(schema),
        relation_(schema.relations[split.relation]),
        books_(books),
        id_of_(id_of),
        write_(write) {}

  absl::StatusOr<EdgeSplitInfo> Run() {
    EdgeSplitInfo info;
    info.relation = split_.relation;
    info.name = split_.name;
    info.count = split_.src.rows();
    MILLRACE_ASSIGN_OR_RETURN(const Array src,
                              Ids(split_.src, relation_.src, "source"));
    MILLRACE_ASSIGN_OR_RETURN(const Array dst,
                              Ids(split_.dst, relation_.dst, "destination"));
    CountOwners(dst, info);
    MILLRACE_RETURN_IF_ERROR(Write("src", src));
    MILLRACE_RETURN_IF_ERROR(Write("dst", dst));
    MILLRACE_RETURN_IF_ERROR(Write("src_original_id", split_.src));
    MILLRACE_RETURN_IF_ERROR(Write("dst_original_id", split_.dst));
    info.has_edge_id = split_.edge_id.present();
    info.has_time = split_.time.present();
    info.has_edge_type = split_.edge_type.present();
    if (split_.label.present()) info.label = {split_.label.dtype(), {}};
    MILLRACE_RETURN_IF_ERROR(Write("edge_id", split_.edge_id));
    MILLRACE_RETURN_IF_ERROR(Write("time", split_.time));
    MILLRACE_RETURN_IF_ERROR(Write("edge_type", split_.edge_type));
    MILLRACE_RETURN_IF_ERROR(Write("label", split_.label));
    if (!split_.negative.present()) return info;
    info.negatives = split_.negative.shape()[1];
    MILLRACE_ASSIGN_OR_RETURN(const Array negative,
                              Ids(split_.negative, relation_.dst, "negative"));
    MILLRACE_RETURN_IF_ERROR(Write("negative", negative));
    MILLRACE_RETURN_IF_ERROR(Write("negative_original_id", split_.negative));
    return info;
  }

 private:
  absl::StatusOr<Array> Ids(const Array& originals, TypeIndex type,
                            std::string_view what) const {
    const NodeType& nodes = schema_.node_types[type];
    const bool narrow = nodes.id_dtype() == DType::kUint32;
    Array ids = Array::Allocate(nodes.id_dtype(), originals.shape());
    const std::span<const int64_t> values = originals.As<int64_t>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0 || values[i] >= nodes.count) {
        return absl::InvalidArgumentError(
            StrCat("split \"", split_.name, "\": ", what, " ", i, " is node ",
                   values[i], ", but node type ", nodes.name, " has ",
                   nodes.count, " nodes"));
      }
      const uint64_t id = id_of_(type, values[i]);
      if (narrow) {
        ids.MutableAs<uint32_t>()[i] = static_cast<uint32_t>(id);
      } else {
        ids.MutableAs<uint64_t>()[i] = id;
      }
    }
    return ids;
  }

  void CountOwners(const Array& dst, EdgeSplitInfo& info) const {
    const PartitionBook& book = books_[relation_.dst];
    info.part_counts.assign(static_cast<size_t>(book.parts()), 0);
    for (int64_t i = 0; i < dst.rows(); ++i) {
      ++info.part_counts[book.Owner(static_cast<uint64_t>(dst.IntegerAt(i)))];
    }
  }

  absl::Status Write(std::string_view column, const Array& array) const {
    if (!array.present()) return absl::OkStatus();
    if (array.rows() != split_.src.rows()) {
      return absl::InvalidArgumentError(
          StrCat("split \"", split_.name, "\": column ", column, " has ",
                 array.rows(), " rows for ", split_.src.rows(), " pairs"));
    }
    return write_(
        SplitPath(schema_.RelationName(split_.relation), split_.name, column),
        array);
  }

  const EdgeSplitColumns& split_;
  const Schema& schema_;
  const Relation& relation_;
  const std::vector<PartitionBook>& books_;
  const IdOfFn& id_of_;
  const WriteArrayFn& write_;
};

// A requested edge, and the row of the split to put it in.
struct Wanted {
  int64_t edge_id;
  int64_t row;
  friend auto operator<=>(const Wanted&, const Wanted&) = default;
};

// Calls visit(edge_id, source, destination, time, type) for all edges of a
// relation, in original ids.
template <typename Visit>
absl::Status ForEachEdge(const Store& store, RelationIndex index, Visit visit) {
  const Relation& relation = store.schema().relations[index];
  const Direction direction = LookupDirection(relation);
  const bool in = direction == Direction::kIn;
  const TypeIndex owner_type = ListType(relation, direction);
  const TypeIndex neighbor_type = NeighborType(relation, direction);
  const PartitionBook& neighbors = store.book(neighbor_type);
  for (const int part : store.partitions()) {
    MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    const Partition& partition = *store.partition(part);
    const NeighborLists& lists = partition.edges[index].lists(direction);
    const std::span<const int64_t> indptr = lists.indptr.As<int64_t>();
    for (size_t row = 0; row + 1 < indptr.size(); ++row) {
      const int64_t self = partition.nodes[owner_type].original_id.IntegerAt(
          static_cast<int64_t>(row));
      for (int64_t at = indptr[row]; at < indptr[row + 1]; ++at) {
        const auto id = static_cast<uint64_t>(lists.indices.IntegerAt(at));
        const int owner = neighbors.Owner(id);
        const int64_t peer =
            store.partition(owner)->nodes[neighbor_type].original_id.IntegerAt(
                static_cast<int64_t>(id - neighbors.begin(owner)));
        visit(lists.edge_id.IntegerAt(at), in ? peer : self, in ? self : peer,
              lists.time.present() ? lists.time.IntegerAt(at) : 0,
              lists.type.present() ? lists.type.IntegerAt(at) : 0);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Wanted>> SortedWishes(
    const Store& store, RelationIndex relation,
    const std::optional<std::vector<int64_t>>& edge_ids) {
  std::vector<Wanted> wanted;
  if (edge_ids.has_value()) {
    for (const int64_t id : *edge_ids) {
      wanted.push_back({id, static_cast<int64_t>(wanted.size())});
    }
  } else {
    MILLRACE_RETURN_IF_ERROR(
        ForEachEdge(store, relation,
                    [&](int64_t edge_id, int64_t, int64_t, int64_t, int64_t) {
                      wanted.push_back({edge_id, 0});
                    }));
  }
  std::sort(wanted.begin(), wanted.end());
  for (size_t i = 0; !edge_ids.has_value() && i < wanted.size(); ++i) {
    wanted[i].row = static_cast<int64_t>(i);
  }
  return wanted;
}

}  // namespace

absl::StatusOr<EdgeSplitInfo> WriteEdgeSplit(
    const EdgeSplitColumns& split, const Schema& schema,
    const std::vector<PartitionBook>& books, const IdOfFn& id_of,
    const WriteArrayFn& write) {
  return EdgeSplitWriter(split, schema, books, id_of, write).Run();
}

absl::StatusOr<EdgeSplitColumns> EdgesById(
    const Store& store, RelationIndex relation,
    const std::optional<std::vector<int64_t>>& edge_ids) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<Wanted> wanted,
                            SortedWishes(store, relation, edge_ids));
  const auto count = static_cast<int64_t>(wanted.size());
  const Relation& info = store.schema().relations[relation];
  const bool timed = info.time == ListTime::kEdge;
  std::vector<int64_t> src(wanted.size(), -1), dst(wanted.size());
  std::vector<int64_t> ids(wanted.size()), times(timed ? wanted.size() : 0);
  std::vector<int32_t> types(info.has_type ? wanted.size() : 0);
  int64_t found = 0;
  MILLRACE_RETURN_IF_ERROR(ForEachEdge(
      store, relation,
      [&](int64_t edge_id, int64_t from, int64_t to, int64_t time,
          int64_t type) {
        auto wish =
            std::lower_bound(wanted.begin(), wanted.end(), Wanted{edge_id, 0});
        for (; wish != wanted.end() && wish->edge_id == edge_id; ++wish) {
          const auto row = static_cast<size_t>(wish->row);
          found += src[row] < 0 ? 1 : 0;
          src[row] = from;
          dst[row] = to;
          ids[row] = edge_id;
          if (timed) times[row] = time;
          if (info.has_type) types[row] = static_cast<int32_t>(type);
        }
      }));
  if (found != count) {
    const auto missing = std::find(src.begin(), src.end(), -1) - src.begin();
    return absl::InvalidArgumentError(
        StrCat("edge id ", (*edge_ids)[missing], " at position ", missing, ": ",
               store.schema().RelationName(relation),
               " has no such edge; its ids are 0 to ", info.max_edge_id));
  }
  EdgeSplitColumns split;
  split.relation = relation;
  split.src = Array::Adopt(std::move(src));
  split.dst = Array::Adopt(std::move(dst));
  split.edge_id = Array::Adopt(std::move(ids));
  if (timed) split.time = Array::Adopt(std::move(times));
  if (info.has_type) split.edge_type = Array::Adopt(std::move(types));
  return split;
}

}  // namespace millrace
