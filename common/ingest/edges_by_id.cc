// SPDX-License-Identifier: Apache-2.0
#include "common/ingest/edges_by_id.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/sample/batch.h"
#include "common/sample/seeds/edge_directory.h"

namespace millrace {
namespace {

// A requested edge, and the row of the split to put it in.
struct RequestedEdge {
  int64_t edge_id;
  int64_t row;
  friend auto operator<=>(const RequestedEdge&, const RequestedEdge&) = default;
};

// Calls visit(edge_id, source, destination, time, type) for all edges of a
// relation, in original ids.
template <typename Visit>
absl::Status ForEachEdge(const Store& store, RelationIndex index, Visit visit) {
  const Relation& relation = store.schema().relations[index];
  const Direction direction = LookupDirection(relation);
  const bool in = direction == Direction::kIn;
  const TypeIndex owner_type = ListOwnerType(relation, direction);
  const TypeIndex neighbor_type = NeighborType(relation, direction);
  const PartitionBook& neighbors = store.book(neighbor_type);
  for (const int part : store.mapped_partitions()) {
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

absl::StatusOr<std::vector<RequestedEdge>> SortedRequests(
    const Store& store, RelationIndex relation,
    const std::optional<std::vector<int64_t>>& edge_ids) {
  std::vector<RequestedEdge> requested;
  if (edge_ids.has_value()) {
    for (const int64_t id : *edge_ids) {
      requested.push_back({id, static_cast<int64_t>(requested.size())});
    }
  } else {
    MILLRACE_RETURN_IF_ERROR(
        ForEachEdge(store, relation,
                    [&](int64_t edge_id, int64_t, int64_t, int64_t, int64_t) {
                      requested.push_back({edge_id, 0});
                    }));
  }
  std::sort(requested.begin(), requested.end());
  for (size_t i = 0; !edge_ids.has_value() && i < requested.size(); ++i) {
    requested[i].row = static_cast<int64_t>(i);
  }
  return requested;
}

}  // namespace

absl::StatusOr<EdgeSplitColumns> EdgesById(
    const Store& store, RelationIndex relation,
    const std::optional<std::vector<int64_t>>& edge_ids) {
  MILLRACE_ASSIGN_OR_RETURN(const std::vector<RequestedEdge> requested,
                            SortedRequests(store, relation, edge_ids));
  const auto count = static_cast<int64_t>(requested.size());
  const Relation& info = store.schema().relations[relation];
  const bool timed = info.time == ListTime::kEdge;
  std::vector<int64_t> src(requested.size(), -1), dst(requested.size());
  std::vector<int64_t> ids(requested.size()),
      times(timed ? requested.size() : 0);
  std::vector<int32_t> types(info.has_type ? requested.size() : 0);
  int64_t found = 0;
  MILLRACE_RETURN_IF_ERROR(ForEachEdge(
      store, relation,
      [&](int64_t edge_id, int64_t from, int64_t to, int64_t time,
          int64_t type) {
        auto request = std::lower_bound(requested.begin(), requested.end(),
                                        RequestedEdge{edge_id, 0});
        for (; request != requested.end() && request->edge_id == edge_id;
             ++request) {
          const auto row = static_cast<size_t>(request->row);
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
