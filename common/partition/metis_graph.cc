// SPDX-License-Identifier: Apache-2.0
#include "common/partition/metis_graph.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/field_error.h"
#include "common/base/interrupt.h"
#include "common/base/status_macros.h"
#include "common/base/strings.h"
#include "common/partition/list_scan.h"

namespace millrace {
namespace {

absl::StatusOr<MetisArray> AllocateArray(int64_t size) {
  const size_t bytes = static_cast<size_t>(size) * sizeof(idx_t);
  MetisArray array(
      static_cast<idx_t*>(std::malloc(std::max<size_t>(bytes, 1))));
  if (array == nullptr) {
    return WithReason(absl::ResourceExhaustedError(
                          StrCat("no memory for METIS: ", bytes, " bytes")),
                      Reason{"too_large_for_metis"});
  }
  return array;
}

void Shrink(MetisArray& array, int64_t size) {
  const size_t bytes = static_cast<size_t>(size) * sizeof(idx_t);
  void* shrunk = std::realloc(array.get(), std::max<size_t>(bytes, 1));
  if (shrunk == nullptr) return;  // the array keeps its size
  array.release();
  array.reset(static_cast<idx_t*>(shrunk));
}

// Calls visit(vertex, vertex) once for every edge that is not a self loop.
template <typename Visit>
absl::Status ForEachEdge(const Store& dataset,
                         const std::vector<int64_t>& type_begin, Visit visit) {
  for (const DatasetLists& lists : FindTopology(dataset)) {
    const int64_t nodes = type_begin[lists.node_type];
    const int64_t others = type_begin[lists.neighbor_type];
    MILLRACE_RETURN_IF_ERROR(ScanLists(lists, [&](size_t node, auto neighbors) {
      const int64_t v = nodes + static_cast<int64_t>(node);
      for (const auto neighbor : neighbors) {
        const int64_t u = others + static_cast<int64_t>(neighbor);
        if (u != v) visit(v, u);
      }
    }));
  }
  return absl::OkStatus();
}

absl::Status FillLists(const Store& dataset, MetisGraph& graph) {
  std::vector<idx_t>& starts = graph.starts;
  starts.assign(static_cast<size_t>(graph.vertices()) + 1, 0);
  MILLRACE_RETURN_IF_ERROR(
      ForEachEdge(dataset, graph.type_begin, [&](int64_t v, int64_t u) {
        ++starts[v + 1];
        ++starts[u + 1];
      }));
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  MILLRACE_ASSIGN_OR_RETURN(graph.neighbors, AllocateArray(graph.entries()));
  std::vector<idx_t> next(starts.begin(), starts.end() - 1);
  return ForEachEdge(dataset, graph.type_begin, [&](int64_t v, int64_t u) {
    graph.neighbors[next[v]++] = static_cast<idx_t>(u);
    graph.neighbors[next[u]++] = static_cast<idx_t>(v);
  });
}

// Sorts every list and merges its duplicates, in place. The weight of an entry
// is the number of duplicates merged into it.
absl::Status MergeLists(MetisGraph& graph) {
  MILLRACE_ASSIGN_OR_RETURN(graph.edge_weights, AllocateArray(graph.entries()));
  idx_t* const neighbors = graph.neighbors.get();
  idx_t* const edge_weights = graph.edge_weights.get();
  idx_t merged = 0;
  idx_t begin = 0;
  for (int64_t v = 0; v < graph.vertices(); ++v) {
    if (v % (1 << 16) == 0) MILLRACE_RETURN_IF_ERROR(CheckInterrupted());
    const idx_t end = graph.starts[v + 1];
    std::sort(neighbors + begin, neighbors + end);
    const idx_t list_begin = merged;
    for (idx_t i = begin; i < end; ++i) {
      if (merged > list_begin && neighbors[merged - 1] == neighbors[i]) {
        ++edge_weights[merged - 1];
      } else {
        neighbors[merged] = neighbors[i];
        edge_weights[merged++] = 1;
      }
    }
    begin = end;
    graph.starts[v + 1] = merged;
  }
  Shrink(graph.neighbors, merged);
  Shrink(graph.edge_weights, merged);
  return absl::OkStatus();
}

absl::Status FillWeights(const Store& dataset, MetisGraph& graph) {
  const Schema& schema = dataset.schema();
  const auto types = schema.node_types.size();
  std::vector<int64_t> degrees(static_cast<size_t>(graph.vertices()), 0);
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    const TypeIndex dst = schema.relations[i].dst;
    MILLRACE_RETURN_IF_ERROR(
        AddInDegrees(dataset, static_cast<RelationIndex>(i),
                     {degrees.data() + graph.type_begin[dst],
                      static_cast<size_t>(schema.node_types[dst].count)}));
  }
  graph.constraints = static_cast<int>(types) + 1;
  graph.weights.assign(degrees.size() * (types + 1), 0);
  for (size_t type = 0; type < types; ++type) {
    for (int64_t v = graph.type_begin[type]; v < graph.type_begin[type + 1];
         ++v) {
      idx_t* const weights = graph.weights.data() + v * graph.constraints;
      weights[type] = 1;
      weights[types] = static_cast<idx_t>(degrees[v]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MetisGraph> BuildMetisGraph(const Store& dataset) {
  MetisGraph graph;
  graph.type_begin = {0};
  for (const NodeType& type : dataset.schema().node_types) {
    graph.type_begin.push_back(graph.type_begin.back() + type.count);
  }
  MILLRACE_RETURN_IF_ERROR(FillLists(dataset, graph));
  MILLRACE_RETURN_IF_ERROR(MergeLists(graph));
  MILLRACE_RETURN_IF_ERROR(FillWeights(dataset, graph));
  return graph;
}

}  // namespace millrace
