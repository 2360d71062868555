// SPDX-License-Identifier: Apache-2.0
#include "common/partition/list_scan.h"

#include "common/base/strings.h"

namespace millrace {

DatasetLists FindLists(const Store& dataset, RelationIndex relation,
                       Direction direction) {
  const Schema& schema = dataset.schema();
  const Relation& described = schema.relations[relation];
  const bool in = direction == Direction::kIn;
  DatasetLists lists;
  lists.relation = relation;
  lists.direction = direction;
  lists.node_type = in ? described.dst : described.src;
  lists.neighbor_type = in ? described.src : described.dst;
  lists.neighbor_count = schema.node_types[lists.neighbor_type].count;
  lists.lists = &dataset.partition(0)->edges[relation].lists(direction);
  lists.file = (dataset.path() / ListPath(0, schema.RelationName(relation),
                                          direction, "indices"))
                   .string();
  return lists;
}

std::vector<DatasetLists> FindTopology(const Store& dataset) {
  std::vector<DatasetLists> topology;
  for (size_t i = 0; i < dataset.schema().relations.size(); ++i) {
    const auto relation = static_cast<RelationIndex>(i);
    const bool in = dataset.schema().relations[i].has_in;
    topology.push_back(
        FindLists(dataset, relation, in ? Direction::kIn : Direction::kOut));
  }
  return topology;
}

absl::Status CheckStarts(const DatasetLists& lists) {
  const std::span<const int64_t> starts = lists.starts();
  if (!starts.empty() && starts.front() == 0 &&
      starts.back() == lists.lists->indices.rows() &&
      std::is_sorted(starts.begin(), starts.end())) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      StrCat(lists.file,
             ": the indptr.npy beside it does not increase from 0 "
             "to its ",
             lists.lists->indices.rows(), " entries"));
}

absl::Status NeighborError(const DatasetLists& lists, int64_t entry,
                           uint64_t neighbor) {
  return absl::DataLossError(StrCat(lists.file, ": entry ", entry, " is ",
                                    neighbor, ", but there are ",
                                    lists.neighbor_count, " nodes"));
}

absl::Status AddInDegrees(const Store& dataset, RelationIndex relation,
                          std::span<int64_t> degrees) {
  if (!dataset.schema().relations[relation].has_in) {
    return ScanLists(FindLists(dataset, relation, Direction::kOut),
                     [degrees](size_t, auto neighbors) {
                       for (const auto v : neighbors) ++degrees[v];
                     });
  }
  const DatasetLists lists = FindLists(dataset, relation, Direction::kIn);
  MILLRACE_RETURN_IF_ERROR(CheckStarts(lists));
  const std::span<const int64_t> starts = lists.starts();
  for (size_t v = 0; v < degrees.size(); ++v) {
    degrees[v] += starts[v + 1] - starts[v];
  }
  return absl::OkStatus();
}

}  // namespace millrace
