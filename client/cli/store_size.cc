// SPDX-License-Identifier: Apache-2.0
#include "client/cli/store_size.h"

namespace millrace {
namespace {

constexpr double kHeaderBytes = 128;  // of a .npy file, as we write them

// Adds up files of one partition or of all.
class Files {
 public:
  // `files` files, which have `rows` elements of `bytes` in all.
  explicit Files(double files) : files_(files) {}
  void Add(bool exists, double rows, double bytes) {
    if (exists) sum_ += files_ * kHeaderBytes + rows * bytes;
  }
  double sum() const { return sum_; }

 private:
  double files_;
  double sum_ = 0;
};

double IdBytes(const NodeType& type) {
  return static_cast<double>(ItemBytes(type.id_dtype()));
}

double RowBytes(const ColumnSpec& column) {
  return static_cast<double>(column.row_bytes());
}

void AddNodes(const NodeType& type, Files& graph, Files& features) {
  const auto count = static_cast<double>(type.count);
  graph.Add(true, count, IdBytes(type));  // original_id
  graph.Add(true, count, IdBytes(type));  // lookup
  graph.Add(true, count, 4);              // hotness
  graph.Add(type.label.present(), count, RowBytes(type.label));
  graph.Add(type.has_time, count, 8);
  features.Add(type.feature.present(), count, RowBytes(type.feature));
}

void AddLists(const Schema& schema, RelationIndex index, Direction direction,
              int parts, Files& graph) {
  const Relation& relation = schema.relations[index];
  const bool in = direction == Direction::kIn;
  const NodeType& owner = schema.node_types[in ? relation.dst : relation.src];
  const NodeType& other = schema.node_types[in ? relation.src : relation.dst];
  const auto edges = static_cast<double>(relation.edge_count);
  graph.Add(true, static_cast<double>(owner.count + parts), 8);  // indptr
  graph.Add(true, edges, IdBytes(other));                        // indices
  graph.Add(true, edges, 8);                                     // edge_id
  graph.Add(true, edges, IdBytes(other));  // neighbor_original_id
  graph.Add(relation.has_weight, edges, 4);
  graph.Add(relation.has_weight, edges, 8);  // weight_sum
  graph.Add(ListsHaveTime(schema, index, direction), edges, 8);
  graph.Add(relation.has_type, edges, 4);
  graph.Add(!in && relation.feature.present(), edges, 8);  // slot
}

}  // namespace

StoreSize EstimateStoreSize(const Schema& schema, int parts, int64_t seeds) {
  Files graph(parts), features(parts);
  for (const NodeType& type : schema.node_types) {
    AddNodes(type, graph, features);
  }
  for (size_t i = 0; i < schema.relations.size(); ++i) {
    const auto index = static_cast<RelationIndex>(i);
    const Relation& relation = schema.relations[i];
    if (relation.has_in) AddLists(schema, index, Direction::kIn, parts, graph);
    if (relation.has_out) {
      AddLists(schema, index, Direction::kOut, parts, graph);
    }
    features.Add(relation.feature.present(),
                 static_cast<double>(relation.edge_count),
                 RowBytes(relation.feature));
  }
  const double id_bytes =
      schema.node_types.empty() ? 0 : IdBytes(schema.node_types[0]);
  return {.graph_bytes = graph.sum(),
          .feature_bytes = features.sum(),
          // Ids, and original ids as int64.
          .split_bytes = static_cast<double>(seeds) * (id_bytes + 8)};
}

}  // namespace millrace
