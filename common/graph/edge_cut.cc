// SPDX-License-Identifier: Apache-2.0
#include "common/graph/edge_cut.h"

#include "common/base/interrupt.h"
#include "common/base/progress.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/file/npy.h"
#include "common/graph/verify_content.h"

namespace millrace {
namespace {

// Counts the edges in one partition's lists whose neighbour is in another one.
absl::StatusOr<int64_t> CountIn(const Store& store, RelationIndex index,
                                int part) {
  const Relation& relation = store.schema().relations[index];
  const Direction direction =
      relation.has_in ? Direction::kIn : Direction::kOut;
  const TypeIndex neighbor =
      direction == Direction::kIn ? relation.src : relation.dst;
  const PartitionBook& book = store.book(neighbor);
  const Array& indices =
      store.partition(part)->edges[index].lists(direction).indices;
  const IdReader ids(indices);
  int64_t cut = 0;
  for (int64_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= book.node_count()) {
      return Violation(store,
                       ListPath(part, store.schema().RelationName(index),
                                direction, "indices"),
                       i,
                       StrCat(ids[i], " is out of range: there are ",
                              book.node_count(), " nodes"));
    }
    cut += ids[i] < book.begin(part) || ids[i] >= book.end(part) ? 1 : 0;
  }
  AdviseAccess(indices, Access::kDone);
  return cut;
}

}  // namespace

absl::StatusOr<int64_t> CountCutEdges(const Store& store) {
  if (store.partition_count() == 1) return 0;
  const int64_t noted = store.manifest().partitioning.cut_edges;
  if (noted >= 0) return noted;
  const std::vector<Relation>& relations = store.schema().relations;
  Progress progress("edge cut", store.partition_count(), "partitions");
  int64_t cut = 0;
  for (int part = 0; part < store.partition_count(); ++part) {
    for (size_t i = 0; i < relations.size(); ++i) {
      MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
      MILLRACE_ASSIGN_OR_RETURN(
          const int64_t more,
          CountIn(store, static_cast<RelationIndex>(i), part));
      cut += more;
    }
    progress.Add(1);
  }
  return cut;
}

}  // namespace millrace
