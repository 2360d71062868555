// SPDX-License-Identifier: Apache-2.0
#include "client/nn/graph_shape.h"

#include "common/base/strings.h"
#include "common/sample/batch.h"

namespace millrace {
namespace {

int64_t MatrixColumns(const ColumnSpec& feature) {
  return feature.present() && feature.row_shape.size() == 1
             ? feature.row_shape[0]
             : 0;
}

}  // namespace

std::vector<std::vector<bool>> GraphShape::NeededTypes(int layers) const {
  std::vector<std::vector<bool>> needed(static_cast<size_t>(layers) + 1);
  for (size_t t = 0; t < types.size(); ++t) {
    needed.back().push_back(IsOutput(static_cast<TypeIndex>(t)));
  }
  for (int i = layers - 1; i >= 0; --i) {
    needed[i] = needed[i + 1];
    for (const Relation& relation : relations) {
      if (needed[i + 1][relation.lists]) needed[i][relation.neighbors] = true;
    }
  }
  return needed;
}

GraphShape GraphShape::Homogeneous(int64_t features) {
  GraphShape shape;
  shape.types = {{std::string(kHomogeneousType), 0, features}};
  shape.relations = {{"node__to__node", 0, 0}};
  return shape;
}

GraphShape GraphShape::Of(const Schema& schema, TypeIndex seed_type,
                          Direction direction) {
  GraphShape shape;
  shape.seed_type = seed_type;
  for (const NodeType& type : schema.node_types) {
    shape.types.push_back({type.name, type.count, MatrixColumns(type.feature),
                           static_cast<TypeIndex>(shape.types.size())});
  }
  for (size_t r = 0; r < schema.relations.size(); ++r) {
    const millrace::Relation& relation = schema.relations[r];
    shape.relations.push_back(
        {schema.RelationName(static_cast<RelationIndex>(r)),
         NeighborType(relation, direction), ListOwnerType(relation, direction),
         static_cast<RelationIndex>(r), MatrixColumns(relation.feature)});
  }
  return shape;
}

GraphShape GraphShape::OfEdges(const Schema& schema, RelationIndex relation,
                               Direction direction) {
  const millrace::Relation& seeds = schema.relations[relation];
  GraphShape shape = Of(schema, seeds.dst, direction);
  shape.source_type = seeds.src;
  return shape;
}

absl::StatusOr<GraphShape> GraphShape::OfGraphs(const Schema& schema,
                                                TypeIndex graph_type) {
  const GraphShape all = Of(schema, graph_type, Direction::kIn);
  GraphShape shape;
  for (const Relation& relation : all.relations) {
    if (relation.lists != graph_type) continue;
    if (shape.members >= 0) {
      return absl::UnimplementedError(
          StrCat("graphs of type ", schema.node_types[graph_type].name,
                 " have nodes in several relations, but training supports "
                 "only one node type\nimport the nodes as one type"));
    }
    shape.members = relation.number;
    shape.types.push_back(all.types[relation.neighbors]);
  }
  for (const Relation& relation : all.relations) {
    if (shape.types.empty() || relation.lists != shape.types[0].number ||
        relation.neighbors != shape.types[0].number) {
      continue;
    }
    shape.relations.push_back(
        {relation.name, 0, 0, relation.number, relation.features});
  }
  return shape;
}

}  // namespace millrace
